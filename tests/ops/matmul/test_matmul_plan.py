"""Products of half precision by their plan: right at every shape and layout, and a row's bits its own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.ops.matmul.layout import operand
from pygpukit.ops.matmul.tile import tiling

pytestmark = pytest.mark.usefixtures("backend_name")

HALVES = ("bfloat16", "float16")
# m, n, k: whole tiles, odd ones, rows that are no whole 16 bytes, one row, one column, a long sum
SHAPES = [
    (128, 256, 64),
    (1, 1, 1),
    (1, 64, 128),
    (7, 9, 11),
    (65, 129, 33),
    (40, 576, 576),
    (300, 1, 77),
    (33, 200, 1001),
]
# Of the result: one rounding to the type, and the sum's own in float32.
ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> gp.GPUArray:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return gp.from_numpy(values).astype(dtype)


def exact(a: gp.GPUArray) -> NDArray[np.float64]:
    return a.astype("float64").to_numpy()


def close(got: gp.GPUArray, a: gp.GPUArray, b: gp.GPUArray) -> None:
    left, right = exact(a), exact(b)
    want, size = left @ right, np.abs(left) @ np.abs(right)
    k = a.shape[-1]
    error = np.abs(exact(got) - want)
    assert np.all(error <= ROUNDING[str(got.dtype)] * np.abs(want) + (k + 8) * 2.0**-24 * size)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_in_every_layout(shape: tuple[int, int, int], dtype: str) -> None:
    m, n, k = shape
    for a in (random((m, k), dtype), random((k, m), dtype).T, random((m + 2, k + 3), dtype)[1:-1, 2:-1]):
        for b in (random((k, n), dtype, 1), random((n, k), dtype, 1).T, random((k, 2 * n), dtype, 1)[:, ::2]):
            out = gp.full((m, n), float("nan"), dtype=dtype)
            assert gp.matmul(a, b, out=out) is out
            close(out, a, b)


@pytest.mark.parametrize("dtype", HALVES)
def test_stacks_of_matrices_and_vectors(dtype: str) -> None:
    a, b = random((3, 2, 40, 72), dtype), random((72, 24), dtype, 1)
    close(a @ b, a, b)  # one matrix for all
    stacked = random((2, 72, 24), dtype, 2)
    close(a @ stacked, a, stacked)
    close(a[:, 1] @ b, a[:, 1], b)
    vector = random((72,), dtype, 3)
    got = a @ vector
    assert got.shape == (3, 2, 40)
    assert np.allclose(exact(got), exact(a) @ exact(vector), rtol=0.02, atol=0.1)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_rows_bits_depend_on_no_other_row(dtype: str) -> None:
    if is_sim():
        pytest.skip("NumPy's products are not those of the tile kernels")
    for k in (64, 577, 4096):
        a, b = random((700, k), dtype), random((k, 200), dtype, 1)
        whole = (a @ b).astype("float32").to_numpy()
        for m in (1, 2, 16, 17, 64, 65, 128, 699):
            part = (a[700 - m :] @ b).astype("float32").to_numpy()
            assert part.tobytes() == whole[700 - m :].tobytes()
        again = (gp.stack([a[:64], a[64:128]]) @ b).astype("float32").to_numpy()
        assert again.tobytes() == whole[:128].tobytes()


def test_the_plan_says_which_kernel_and_why() -> None:
    half, single = random((256, 256), "bfloat16"), gp.ones((256, 256))
    found = gp.matmul_plan(half, half)
    assert found.backend == ("numpy" if is_sim() else "tile") and found.reason
    assert (found.tile is None) == is_sim()
    assert gp.matmul_plan(single, single).backend == ("numpy" if is_sim() else "plain")
    with pytest.raises(gp.ShapeError, match="inner dimensions are 256 and 3"):
        gp.matmul_plan(half, random((3, 4), "bfloat16"))


def test_the_fastest_tile_follows_the_shape() -> None:
    assert (tiling.fastest("half", 8192, 8192, 8192, 1, 2, 132).rows) >= 128
    assert tiling.fastest("half", 1, 4096, 4096, 1, 2, 132).rows == 16
    assert tiling.fastest("half", 4096, 4096, 4096, 1, 2, 132, general=True).general
    for extent in (1, 15, 16, 63, 64, 65, 1000):  # some tile for each
        for general in (False, True):
            assert tiling.fastest("half", extent, 8, 8, 1, 2, 132, general) in tiling.tiles("half")


def test_what_is_read_in_place() -> None:
    a = random((24, 64), "float16")
    assert operand.as_it_is(a) == (a, False, 64, 0, 1, 1)

    def order(matrices: gp.GPUArray) -> tuple[object, ...]:
        found = operand.as_it_is(matrices)
        assert found is not None
        return found[1:]

    assert order(a.T) == (True, 64, 0, 1, 1)
    assert operand.as_it_is(a[:, :60]) is None  # what follows in the row is no zero
    assert operand.as_it_is(a[:, 1:57]) is None  # not aligned
    assert operand.as_it_is(a[:, ::2]) is None
    assert operand.as_it_is(a[::-1]) is None
    assert order(a[::2]) == (False, 128, 0, 1, 1)
    stack = random((3, 4, 16, 32), "float16")
    assert order(stack) == (False, 32, 512, 12, 1)
    assert operand.as_it_is(stack[:, :3]) is None and order(stack[:, 1]) == (False, 32, 2048, 3, 1)
    assert order(gp.broadcast_to(a, (5, 24, 64))) == (False, 64, 0, 1, 5)  # one matrix for all
    assert order(gp.broadcast_to(stack[0], (5, 4, 16, 32))) == (False, 32, 512, 4, 1)  # four, again and again
    assert order(gp.broadcast_to(stack[0][:, None], (4, 7, 16, 32))) == (False, 32, 512, 4, 7)  # each seven times
    assert operand.as_it_is(gp.broadcast_to(stack[:, None], (3, 2, 4, 16, 32))) is None
