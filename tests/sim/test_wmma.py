"""Warp matrix fragments, nvcuda::wmma: every shape, type and layout against NumPy, on both backends."""

from __future__ import annotations

import numpy as np
import pytest
from wmma_kinds import KINDS, STORED, Kind

import pygpukit as gp
from pygpukit.core.errors import CompileError

HEAD = "#include <mma.h>\nusing namespace nvcuda;\n"
pytestmark = pytest.mark.usefixtures("backend_name")


GROUPS = {kind.group: [other for other in KINDS if other.group == kind.group] for kind in KINDS}


def kernel(kind: Kind, name: str, satf: str = "") -> str:
    """A kernel that multiplies one pair of fragments."""
    multiply = "bmma_sync" if kind.element.endswith("b1") else "mma_sync"
    return f"""
extern "C" __global__ void {name}(const {kind.pointed} *a, unsigned lda, const {kind.pointed} *b, unsigned ldb,
                                  const {kind.before} *c, {kind.after} *d, unsigned ldc) {{
  {kind.fragment("a")} left;
  {kind.fragment("b")} right;
  {kind.fragment("c")} before;
  {kind.fragment("d")} after;
  wmma::load_matrix_sync(left, a, lda);
  wmma::load_matrix_sync(right, b, ldb);
  wmma::load_matrix_sync(before, c, ldc, wmma::mem_{kind.sums});
  wmma::{multiply}(after, left, right, before{satf});
  wmma::store_matrix_sync(d, after, ldc, wmma::mem_{kind.sums});
}}"""


def multiplied(kind: Kind, run: gp.JitKernel, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """d of one product; what lies between the lines of d stays as it was."""
    (left, lda), (right, ldb) = kind.in_memory(a, kind.left), kind.in_memory(b, kind.right)
    before = np.pad(c if kind.sums == "row_major" else c.T, ((0, 0), (0, 8)))
    after = gp.from_numpy(np.full(before.shape, 77, STORED[kind.after]))
    run[1, 32](kind.on_device(left), lda, kind.on_device(right), ldb, gp.from_numpy(before), after, before.shape[1])
    found = after.to_numpy()
    assert (found[:, -8:] == 77).all()
    return found[:, :-8] if kind.sums == "row_major" else found[:, :-8].T


@pytest.mark.parametrize("group", GROUPS)
def test_products_of_every_layout(group: str, backend_name: str) -> None:
    rng = np.random.default_rng()
    source = HEAD + "".join(kernel(kind, f"k{i}") for i, kind in enumerate(GROUPS[group]))
    for i, kind in enumerate(GROUPS[group]):
        a, b = kind.operand(rng, kind.m, kind.k), kind.operand(rng, kind.k, kind.n)
        c = kind.sum_before(rng)
        found, expected = multiplied(kind, gp.jit(source, func=f"k{i}"), a, b, c), kind.product(a, b, c)
        if kind.integer or (backend_name == "sim" and kind.element != "double"):
            assert np.array_equal(found, expected), kind.name
        else:
            tolerance = {"half": 4e-3, "float": 1e-5, "double": 1e-14}[kind.after]
            assert np.allclose(found, expected, rtol=tolerance, atol=tolerance * 8), kind.name


def test_sums_of_integers_stop_at_the_ends_of_their_range() -> None:
    kind = Kind(16, 16, 16, "signed char", "int", "int")
    rng = np.random.default_rng()
    a, b = kind.operand(rng, 16, 16), kind.operand(rng, 16, 16)
    c = rng.choice([2**31 - 9, 9 - 2**31], (16, 16)).astype("int32")
    run = gp.jit(HEAD + kernel(kind, "k", ", true"), func="k")
    assert np.array_equal(multiplied(kind, run, a, b, c), np.clip(a @ b + c, -(2**31), 2**31 - 1))


ELEMENTS = [
    ("matrix_a, 16, 16, 16, half, wmma::row_major", "half", 16, 16),
    ("matrix_a, 32, 8, 16, half, wmma::col_major", "half", 32, 16),
    ("matrix_b, 16, 16, 16, half, wmma::row_major", "half", 16, 16),
    ("matrix_b, 32, 8, 16, half, wmma::row_major", "half", 16, 8),
    ("matrix_a, 8, 32, 16, signed char, wmma::row_major", "signed char", 8, 16),
    ("matrix_b, 8, 32, 16, unsigned char, wmma::row_major", "unsigned char", 16, 32),
    ("matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major", "float", 16, 8),
    ("matrix_b, 8, 8, 4, double, wmma::row_major", "double", 4, 8),
    ("accumulator, 16, 16, 16, float", "float", 16, 16),
    ("accumulator, 8, 32, 16, half", "half", 8, 32),
    ("accumulator, 8, 8, 32, int", "int", 8, 8),
]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("fragment", "kind", "rows", "columns"), ELEMENTS)
def test_lanes_hold_every_element(
    fragment: str, kind: str, rows: int, columns: int, check: bool, backend_name: str
) -> None:
    if check and backend_name == "cuda":
        pytest.skip("checked mode is the simulation's")
    layout = ", wmma::mem_row_major" if "accumulator" in fragment else ""
    line = rows if "col_major" in fragment else columns
    source = f"""{HEAD}
extern "C" __global__ void k(const {kind} *in, {kind} *out, int *counts) {{
  wmma::fragment<wmma::{fragment}> f;
  wmma::load_matrix_sync(f, in, {line}{layout});
  counts[threadIdx.x] = f.num_elements;
  for (int i = 0; i < f.num_elements; ++i) out[threadIdx.x * f.num_elements + i] = f.x[i];
}}"""
    dtype, size = STORED[kind], rows * columns
    values = np.random.default_rng().permutation(size) % (128 if dtype in ("int8", "uint8") else size)
    counts, out = gp.from_numpy(np.zeros(32, "int32")), gp.from_numpy(np.zeros(32 * 16, dtype))
    gp.jit(source, func="k", check=check)[1, 32](gp.from_numpy(values.astype(dtype)), out, counts)
    held = np.unique(counts.to_numpy()).item()
    assert held == (16 if kind == "half" and "accumulator" not in fragment else size // 32)
    found, times = np.unique(out.to_numpy()[: 32 * held], return_counts=True)
    expected, once = np.unique(values, return_counts=True)
    assert np.array_equal(found, expected) and np.array_equal(times, once * (32 * held // size))


def test_filled_fragments_are_what_was_asked_for() -> None:
    source = f"""{HEAD}
namespace small = wmma::experimental::precision;
extern "C" __global__ void k(unsigned *out, float *sums) {{
  wmma::fragment<wmma::matrix_a, 8, 8, 32, small::s4, wmma::row_major> signs;
  wmma::fragment<wmma::matrix_b, 8, 8, 32, small::u4, wmma::col_major> plain;
  wmma::fragment<wmma::matrix_a, 8, 8, 128, small::b1, wmma::row_major> bits;
  wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum;
  wmma::fill_fragment(signs, -3);
  wmma::fill_fragment(plain, 27u);
  wmma::fill_fragment(bits, 3u);
  wmma::fill_fragment(sum, 1.5f);
  out[threadIdx.x] = (unsigned)signs.x[0];
  out[32 + threadIdx.x] = plain.x[0];
  out[64 + threadIdx.x] = bits.x[0];
  out[96 + threadIdx.x] = signs.num_elements + 100 * bits.num_elements + 10000 * signs.num_storage_elements;
  wmma::store_matrix_sync(sums, sum, 8, wmma::mem_row_major);
}}"""
    out, sums = gp.from_numpy(np.zeros((4, 32), "uint32")), gp.from_numpy(np.zeros(256, "float32"))
    gp.jit(source, func="k")[1, 32](out, sums)
    for row, expected in zip(out.to_numpy(), (0xDDDDDDDD, 0xBBBBBBBB, 0xFFFFFFFF, 13208), strict=True):
        assert (row == expected).all()
    assert (sums.to_numpy() == 1.5).all()


def test_floats_become_tf32_with_middles_away_from_zero() -> None:
    rng = np.random.default_rng()
    bits = rng.integers(0, 1 << 32, 4096, dtype="uint32")
    bits[:512] = bits[:512] & 0xFFFFE000 | 0x1000  # middles
    values = bits.view("float32")
    out = gp.from_numpy(np.zeros(4096, "uint32"))
    source = f"""{HEAD}
extern "C" __global__ void k(const float *in, unsigned *out) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __float_as_uint(wmma::__float_to_tf32(in[i]));
}}"""
    gp.jit(source, func="k")[16, 256](gp.from_numpy(values), out)
    finite = np.isfinite(values)
    expected = (bits.astype("uint64") + 0x1000 & 0xFFFFE000).astype("uint32")
    assert np.array_equal(out.to_numpy()[finite], expected[finite])


@pytest.mark.parametrize(
    "fragment",
    [
        "matrix_a, 16, 16, 16, float, wmma::row_major",
        "matrix_a, 16, 8, 16, half, wmma::row_major",
        "matrix_b, 8, 8, 32, wmma::experimental::precision::s4, wmma::row_major",
        "matrix_a, 16, 16, 16, half",
        "accumulator, 16, 16, 16, __nv_bfloat16",
    ],
)
def test_fragments_that_there_are_not(fragment: str) -> None:
    body = f"  wmma::fragment<wmma::{fragment}> f;\n  *o = f.num_elements;"
    with pytest.raises(CompileError) as caught:
        _ = gp.jit(f"{HEAD}__global__ void k(int *o) {{\n{body}\n}}", func="k").compiled
    assert caught.value.diagnostics[0].line == 4
