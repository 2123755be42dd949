"""Kernels that include CuTe, against NumPy: layouts, copies, products on tensor cores; on both backends."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import ModelNotFoundError
from pygpukit.models import cutlass

FOLDER = Path(__file__).parent / "cute_kernels"
SEED = int(os.environ.get("PYGPUKIT_CUTE_SEED") or secrets.randbits(32))
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module", autouse=True)
def headers() -> Path:
    try:
        return cutlass.get()
    except ModelNotFoundError as error:
        pytest.skip(f"the headers of CuTe are not here: {error}")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The templates of a product take half a minute of a processor, on a busy machine minutes."""
    monkeypatch.setenv("PYGPUKIT_SIM_COMPILE_TIMEOUT_S", "1500")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def kernel(file: str, name: str) -> Any:
    return gp.jit((FOLDER / file).read_text(), name, name=file)


def colexicographic(*extents: int) -> Iterator[tuple[int, ...]]:
    """Coordinates in CuTe's order: the first runs fastest."""
    return (index[::-1] for index in np.ndindex(*extents[::-1]))


def offsets(name: str, count: int, *arguments: int, threads: int = 32) -> Array:
    out = gp.from_numpy(np.full(count + 3, -7, np.int32))
    kernel("layouts.cu", name)[1, threads](*arguments, out)
    found = out.to_numpy()
    assert (found[count:] == -7).all()
    return found[:count]


def test_layouts_map_as_their_algebra_says(backend_name: str, rng: np.random.Generator) -> None:
    assert offsets("composed", 4).tolist() == [0, 3, 6, 9]
    tiles = [i + 4 * t + 12 * (j + 2 * s) for i, j, t, s in colexicographic(4, 2, 3, 4)]
    assert offsets("divided", 96).tolist() == tiles
    blocks = [4 * i + j + 8 * (a + 3 * b) for i, a, j, b in colexicographic(2, 3, 4, 2)]
    assert offsets("product", 48).tolist() == blocks
    rest = offsets("complemented", 8)
    covered = sorted(int(c) + i + 8 * j for c in rest for i in range(2) for j in range(4))
    assert covered == list(range(64)) and (np.diff(rest) > 0).all()
    back = offsets("inverted", 32)
    assert (8 * (back % 4) + back // 4 == np.arange(32)).all()
    m, n = (int(x) for x in rng.integers(1, 60, 2))
    assert offsets("dynamic", m * n, m, n).tolist() == [i * n + j for i, j in colexicographic(m, n)]
    plain = np.array([64 * i + j for i, j in colexicographic(8, 64)])
    assert (offsets("swizzled", 512) == (plain ^ (plain >> 6 & 7) << 3)).all()
    places = [(t % 4 + 4 * i, t // 4 + 2 * j) for t in range(8) for i, j in colexicographic(2, 6)]
    assert offsets("coordinates", 192, threads=8).reshape(-1, 2).tolist() == [list(one) for one in places]


MOVES: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "tiled": (32, lambda x: 2 * x + 1),
    "transposed": (32, lambda x: x.T),
    "asynchronous": (32, lambda x: -x),
    "odd": (1, lambda x: x),
}


@pytest.mark.parametrize("name", MOVES)
def test_copies_move_what_they_say(backend_name: str, rng: np.random.Generator, name: str) -> None:
    multiple, reference = MOVES[name]
    for _ in range(2):
        m, n = (int(x) * multiple for x in rng.integers(1, 4 if multiple > 1 else 90, 2))
        x = rng.standard_normal((m, n), np.float32)
        expected = reference(x)
        y = gp.from_numpy(np.full(expected.shape, np.nan, np.float32))
        high, wide = (16, 32) if name == "odd" else (32, 32)
        kernel("copies.cu", name)[(-(-n // wide), -(-m // high)), 128](gp.from_numpy(x), y, m, n)
        assert np.array_equal(y.to_numpy(), expected), f"{m} x {n}, PYGPUKIT_CUTE_SEED={SEED}"


def test_partitions_add(backend_name: str, rng: np.random.Generator) -> None:
    n = 256 * int(rng.integers(1, 6))
    x, y = rng.standard_normal((2, n), np.float32)
    factor = float(np.float32(rng.standard_normal()))
    result = gp.from_numpy(y)
    kernel("copies.cu", "axpy")[n // 256, 64](factor, gp.from_numpy(x), result, n)
    np.testing.assert_allclose(result.to_numpy(), np.float64(factor) * x + y, rtol=1e-6, atol=1e-6)


def operands(rng: np.random.Generator, dtype: str, m: int, n: int, k: int) -> tuple[Any, Any, Array, Array]:
    """A and B on the device and the numbers in them."""
    if dtype == "int8":
        a, b = rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (n, k), np.int8)
    else:
        a, b = rng.standard_normal((m, k)), rng.standard_normal((n, k))
    if dtype == "tf32":
        cut = np.uint32(0xFFFFE000)
        a, b = ((x.astype(np.float32).view(np.uint32) & cut).view(np.float32) for x in (a, b))
    elif dtype == "bfloat16":
        arrays = [gp.from_numpy(x.astype(np.float32)).astype(gp.bfloat16) for x in (a, b)]
        return *arrays, *(x.astype(gp.float32).to_numpy().astype(np.float64) for x in arrays)
    elif dtype != "int8":
        a, b = a.astype(dtype), b.astype(dtype)
    return gp.from_numpy(a), gp.from_numpy(b), a.astype(np.float64), b.astype(np.float64)


# Kernel: element types of operands and sums in CuTe and NumPy, atom, depth of a tile, relative error.
PRODUCTS = {
    "halves": ("half_t", "float16", "float", np.float32, "SM80_16x8x16_F32F16F16F32_TN", 16, 2e-6),
    "brains": ("bfloat16_t", "bfloat16", "float", np.float32, "SM80_16x8x16_F32BF16BF16F32_TN", 32, 2e-6),
    "tensor_floats": ("tfloat32_t", "tf32", "float", np.float32, "SM80_16x8x8_F32TF32TF32F32_TN", 16, 2e-6),
    "bytes": ("int8_t", "int8", "int", np.int32, "SM80_16x8x32_S32S8S8S32_TN", 32, 0.0),
    "doubles": ("double", "float64", "double", np.float64, "SM80_8x8x4_F64F64F64F64_TN", 16, 1e-14),
    "fused": ("float", "float32", "float", np.float32, "MMA_Atom<UniversalFMA<float>>", 8, 2e-6),
    "staged": ("half_t", "float16", "float", np.float32, "", 32, 2e-6),
}


@pytest.mark.timeout(1600)
@pytest.mark.turns(7)  # each takes seconds to compile
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_numpy_s(backend_name: str, rng: np.random.Generator, name: str) -> None:
    element, dtype, of_sums, sums, atom, depth, tolerance = PRODUCTS[name]
    if name == "staged":
        source = (FOLDER / "staged.cu").read_text()
    else:
        warps = ", Layout<Shape<_16, _8>>{}" if name == "fused" else ""
        source = f"""{(FOLDER / "products.cu").read_text()}
        extern "C" __global__ void {name}(const {element} *a, const {element} *b, {of_sums} *c, int m, int n, int k) {{
          plain<{atom}, {depth}>(a, b, c, m, n, k{warps});
        }}"""
    m, n, k = 64, 64 * int(rng.integers(1, 3)), depth * int(rng.integers(1, 5))
    a, b, left, right = operands(rng, dtype, m, n, k)
    c = gp.from_numpy(np.full((m, n), 77, sums))
    gp.jit(source, name, name=name)[(n // 64, m // 64), 128](a, b, c, m, n, k)
    expected = left @ right.T
    error = np.linalg.norm(c.to_numpy() - expected) / np.linalg.norm(expected)
    assert error <= tolerance, f"{m} x {n} x {k}: {error}, PYGPUKIT_CUTE_SEED={SEED}"
