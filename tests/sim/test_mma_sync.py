"""The matrix instructions: mma.sync of every dense shape and type, ldmatrix, stmatrix, movmatrix, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_kinds import BITS, CONSTRAINTS, KINDS, REGISTERS, STORED, Kind, operand, registers
from matrix_layouts import quarter, quarter_left, quarter_right, quarter_sums

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("backend_name")
GROUPS = {f"m{kind.m}n{kind.n}k{kind.k} {BITS[kind.a]} bits": None for kind in KINDS}


def kernel(name: str, instruction: str, tags: tuple[str, ...], counts: tuple[int, ...]) -> str:
    """A kernel that runs the instruction once; registers of lanes lie one after another. tags: types of d, a, b, c."""
    types = [REGISTERS.get(tag, "unsigned") for tag in tags]
    slots, at = [], 0
    for count in counts:
        slots.append("{" + ", ".join(f"%{at + i}" for i in range(count)) + "}")
        at += count
    outs = ", ".join(f'"={CONSTRAINTS[types[0]]}"(d[{i}])' for i in range(counts[0]))
    ins = ", ".join(
        f'"{CONSTRAINTS[kind]}"({array}[{i}])'
        for kind, array, count in zip(types[1:], "abc", counts[1:], strict=True)
        for i in range(count)
    )
    arrays = "".join(f"  {kind} {array}[{count}];\n" for kind, array, count in zip(types, "dabc", counts, strict=True))
    loads = "".join(
        f"  for (int i = 0; i < {count}; ++i) {array}[i] = {array}s[threadIdx.x * {count} + i];\n"
        for array, count in zip("abc", counts[1:], strict=True)
    )
    parameters = ", ".join(f"const {kind} *{array}s" for kind, array in zip(types[1:], "abc", strict=True))
    return f"""
extern "C" __global__ void {name}({parameters}, {types[0]} *ds) {{
{arrays}{loads}
  asm volatile("{instruction} {", ".join(slots)};" : {outs} : {ins});
  for (int i = 0; i < {counts[0]}; ++i) ds[threadIdx.x * {counts[0]} + i] = d[i];
}}"""


def counts_of(kind: Kind) -> tuple[int, int, int, int]:
    def of(tag: str, elements: int) -> int:
        return elements * BITS[tag] // 32 // (64 if tag == "f64" else 32)

    sums = kind.m * kind.n
    return of(kind.d, sums), of(kind.a, kind.m * kind.k), of(kind.b, kind.k * kind.n), of(kind.c, sums)


def instruction_of(kind: Kind) -> str:
    middle = kind.op if kind.op == ".satfinite" else ""
    return f"mma.sync.aligned.m{kind.m}n{kind.n}k{kind.k}.row.col{middle}.{kind.d}.{kind.a}.{kind.b}.{kind.c}" + (
        kind.op if "popc" in kind.op else ""
    )


def source_of(kind: Kind, name: str) -> str:
    return kernel(name, instruction_of(kind), (kind.d, kind.a, kind.b, kind.c), counts_of(kind))


@pytest.mark.parametrize("group", GROUPS)
def test_products(group: str, backend_name: str) -> None:
    rng = np.random.default_rng()
    kinds = [kind for kind in KINDS if f"m{kind.m}n{kind.n}k{kind.k} {BITS[kind.a]} bits" == group]
    source = "".join(source_of(kind, f"k{i}") for i, kind in enumerate(kinds))
    for i, kind in enumerate(kinds):
        a, b, c = kind.operands(rng)
        left, right, around = kind.rules()
        held = kind.held(kind.a, a, left), kind.held(kind.b, b, right), kind.held(kind.c, c, around)
        out = gp.from_numpy(np.zeros((32, counts_of(kind)[0]), STORED[REGISTERS.get(kind.d, "unsigned")]))
        gp.jit(source, func=f"k{i}")[1, 32](*map(gp.from_numpy, held), out)
        found, expected = kind.dropped(kind.d, out.to_numpy(), c.shape, around), kind.product(a, b, c)
        if kind.d == "s32" or (backend_name == "sim" and kind.d != "f64"):
            assert np.array_equal(found, expected), kind.name
        else:
            tolerance = {"f16": 4e-3, "f32": 1e-5, "f64": 1e-14}[kind.d]
            scale = np.abs(a) @ np.abs(b) + np.abs(c)
            assert (np.abs(found - expected) <= tolerance * scale).all(), kind.name


QUARTERS = [(d, c, left, right) for d, c in (("f16", "f16"), ("f32", "f16"), ("f32", "f32"))
            for left in ("row", "col") for right in ("row", "col")]  # fmt: skip


@pytest.mark.parametrize(("d", "c", "left", "right"), QUARTERS)
def test_four_products_of_halves(d: str, c: str, left: str, right: str, backend_name: str) -> None:
    rng = np.random.default_rng()
    a, b = operand(rng, "f16", 32, 4).reshape(4, 8, 4), operand(rng, "f16", 16, 8).reshape(4, 4, 8)
    before = operand(rng, c, 32, 8).reshape(4, 8, 8)
    instruction = f"mma.sync.aligned.m8n8k4.{left}.{right}.{d}.f16.f16.{c}"
    counts = (8 if d == "f32" else 4, 2, 2, 8 if c == "f32" else 4)
    source = kernel("k", instruction, (d, "f16", "f16", c), counts)

    def of_lanes(kind: str, matrices: np.ndarray, count: int, place: object) -> np.ndarray:
        values = np.array([[matrices[quarter(lane)][place(lane, i)] for i in range(count)] for lane in range(32)])
        return registers(kind, values, BITS[kind])

    held = (
        of_lanes("f16", a, 4, lambda lane, i: quarter_left(left, lane, i)),
        of_lanes("f16", b, 4, lambda lane, i: quarter_right(right, lane, i)),
        of_lanes(c, before, 8, lambda lane, i: quarter_sums(BITS[c], lane, i)),
    )
    out = gp.from_numpy(np.zeros((32, counts[0]), STORED[REGISTERS.get(d, "unsigned")]))
    gp.jit(source, func="k")[1, 32](*map(gp.from_numpy, held), out)
    lanes = out.to_numpy() if d == "f32" else out.to_numpy().view("float16")
    found = np.full((4, 8, 8), np.nan)
    for lane in range(32):
        for i in range(8):
            found[quarter(lane)][quarter_sums(BITS[d], lane, i)] = lanes[lane, i]
    expected = before.astype("float32")
    for k in range(4):
        expected = (a[:, :, k, None] * b[:, k, None, :] + expected.astype("float64")).astype("float32")
    if backend_name == "sim":
        assert np.array_equal(found, expected.astype("float16" if d == "f16" else "float32"))
    else:
        assert np.allclose(found, expected, rtol=4e-3, atol=4e-3)


MATRICES = """
extern "C" __global__ void k(const unsigned short *in, unsigned *held, unsigned short *out) {
  __shared__ __align__(16) unsigned short rows[COUNT * 8][24];
  __shared__ __align__(16) unsigned short back[COUNT * 8][24];
  const int lane = threadIdx.x;
  for (int i = lane; i < COUNT * 64; i += 32) rows[i / 8][i % 8] = in[i];
  for (int i = lane; i < COUNT * 8 * 24; i += 32) back[i / 24][i % 24] = 7;
  __syncthreads();
  unsigned r[COUNT];
  void *row = rows[lane % (COUNT * 8)], *to = back[lane % (COUNT * 8)];
  unsigned at = (unsigned)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8" LOAD ".shared.b16 " SLOTS ", [%" NEXT "];" : OUTS : "r"(at) : "memory");
  for (int i = 0; i < COUNT; ++i) held[lane * COUNT + i] = r[i];
  at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("stmatrix.sync.aligned.m8n8" STORE ".shared.b16 [%0], " BEHIND ";" : : "r"(at), INS : "memory");
  __syncthreads();
  for (int i = lane; i < COUNT * 8 * 24; i += 32) out[i] = back[i / 24][i % 24];
}
"""


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("stores", [False, True])
def test_matrices_to_registers_and_back(count: int, loads: bool, stores: bool) -> None:
    matrices = np.random.default_rng().integers(0, 1 << 16, (count, 8, 8)).astype("uint16")
    slots = [f"%{i}" for i in range(count)]
    defines = {
        "COUNT": count,
        "LOAD": f'".x{count}{".trans" * loads}"', "STORE": f'".x{count}{".trans" * stores}"', "NEXT": f'"{count}"',
        "SLOTS": f'"{{{", ".join(slots)}}}"', "BEHIND": f'"{{{", ".join(f"%{i + 1}" for i in range(count))}}}"',
        "OUTS": ", ".join(f'"=r"(r[{i}])' for i in range(count)),
        "INS": ", ".join(f'"r"(r[{i}])' for i in range(count)),
    }  # fmt: skip
    held = gp.from_numpy(np.zeros((32, count), "uint32"))
    out = gp.from_numpy(np.zeros((count, 8, 24), "uint16"))
    gp.jit(MATRICES, func="k", defines=defines)[1, 32](gp.from_numpy(matrices), held, out)
    pairs = held.to_numpy().view("uint16").reshape(32, count, 2)
    for lane in range(32):
        for j in range(2):
            line, at = lane // 4, lane % 4 * 2 + j
            expected = matrices[:, at, line] if loads else matrices[:, line, at]
            assert np.array_equal(pairs[lane, :, j], expected)
    stored = matrices if loads == stores else matrices.transpose(0, 2, 1)
    assert np.array_equal(out.to_numpy()[..., :8], stored) and (out.to_numpy()[..., 8:] == 7).all()


def test_a_matrix_transposed_in_registers() -> None:
    source = """
extern "C" __global__ void k(const unsigned *in, unsigned *out) {
  unsigned to;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(in[threadIdx.x]));
  out[threadIdx.x] = to;
}"""
    matrix = np.random.default_rng().integers(0, 1 << 16, (8, 8)).astype("uint16")
    out = gp.from_numpy(np.zeros(32, "uint32"))
    gp.jit(source, func="k")[1, 32](gp.from_numpy(matrix.view("uint32").ravel()), out)
    assert np.array_equal(out.to_numpy().view("uint16").reshape(8, 8), matrix.T)
