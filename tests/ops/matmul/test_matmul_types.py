"""Products of int8 in int32, of float32 in tf32 and of fp8 with scales, against float64, on both backends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.ops.matmul.fp8 import _checked as fp8_checked
from pygpukit.ops.matmul.tile import fp8 as tile_fp8
from pygpukit.ops.matmul.tile import int8_tf32, tiling

pytestmark = pytest.mark.usefixtures("backend_name")

# m, n, k: whole tiles, odd ones, rows that are no whole 16 bytes, one row, one column, no row, no sum
SHAPES = [(128, 256, 128), (1, 1, 1), (1, 48, 200), (7, 9, 11), (65, 129, 33), (30, 1, 77), (0, 3, 4), (4, 5, 0)]
TF32, BFLOAT16 = 2.0**-10 + 2.0**-14, 2.0**-8  # of two rounded factors and the sum; of one rounding
FP8 = 2.0**-10  # tensor cores cut the products of fp8 off about 13 bits below the largest of those that they add


def layouts(values: NDArray[np.generic]) -> Iterator[gp.GPUArray]:
    """The matrix by rows, by columns, and cut out of a larger one."""
    yield gp.from_numpy(values)
    yield gp.from_numpy(values.T.copy()).T
    yield gp.from_numpy(np.pad(values, ((1, 1), (2, 1))))[1:-1, 2:-1]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_int8_is_exact(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng()
    left, right = rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (k, n), np.int8)
    want = left.astype(np.int64) @ right.astype(np.int64)
    for a in layouts(left):
        for b in layouts(right):
            out = gp.full((m, n), -1, "int32")
            assert gp.matmul(a, b, out=out, dtype="int32") is out
            np.testing.assert_array_equal(out.to_numpy(), want)


def test_int8_at_its_ends_in_stacks_and_as_before() -> None:
    for low, high in ((-128, -128), (-128, 127), (127, 127)):
        a, b = gp.full((3, 8192), low, "int8"), gp.full((8192, 5), high, "int8")
        assert (gp.matmul(a, b, dtype="int32").to_numpy() == low * high * 8192).all()
    rng = np.random.default_rng()
    left, right = rng.integers(-128, 128, (3, 2, 9, 40), np.int8), rng.integers(-128, 128, (2, 40, 24), np.int8)
    a, b = gp.from_numpy(left), gp.from_numpy(right)
    np.testing.assert_array_equal(gp.matmul(a, b, dtype="int32").to_numpy(), left.astype(int) @ right.astype(int))
    vector = gp.matmul(a[0, 0], b[0, :, 0], dtype="int32")
    np.testing.assert_array_equal(vector.to_numpy(), left[0, 0].astype(int) @ right[0, :, 0].astype(int))
    assert (a @ b).dtype == "int8"  # without dtype= integers wrap
    with pytest.raises(gp.DTypeError, match="the operands promote to int32"):
        gp.matmul(gp.ones((2, 2), "int32"), gp.ones((2, 2), "int32"), dtype="int8")
    with pytest.raises(gp.DTypeError, match=r"matmul: float32 @ float8_e4m3: float8_e4m3 .* gp.matmul_fp8\(\)"):
        gp.matmul(gp.ones((2, 2)), gp.ones((2, 2)).astype("float8_e4m3"))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tf32_is_near_float32(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng()
    left, right = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    want, size = left.astype(float) @ right, np.abs(left).astype(float) @ np.abs(right)
    for a in layouts(left):
        for b in layouts(right):
            got = gp.matmul(a, b, tf32=True).to_numpy()
            assert got.shape == (m, n) and np.all(np.abs(got - want) <= TF32 * size)
    doubled = gp.matmul(gp.from_numpy(left), gp.from_numpy(right), alpha=2, tf32=True).to_numpy()
    assert np.all(np.abs(doubled - 2 * want) <= 2 * TF32 * size)


def test_plans_of_every_type() -> None:
    a, b = gp.ones((64, 64), "int8"), gp.ones((64, 64))
    backend = "numpy" if is_sim() else "tile"
    assert gp.matmul_plan(a, a, dtype="int32").backend == backend
    assert gp.matmul_plan(b, b, tf32=True).backend == backend
    assert gp.matmul_plan(a, a).backend == ("numpy" if is_sim() else "plain")
    few = gp.ops.matmul_fp8_plan(fp8(np.ones((4, 4))), fp8(np.ones((4, 4))))
    assert few.backend == backend or (backend, few.backend) == ("tile", "hopper")  # the same bits, whichever is faster
    for family in ("int8", "tf32"):
        assert tiling.fastest(family, 8192, 8192, 8192, 1, 4, 132).rows >= 128
        assert tiling.fastest(family, 1, 4096, 4096, 1, 4, 132).rows == 16
    listed = [name for listing in (int8_tf32._listing(), tile_fp8._listing()) for (name,) in listing]
    assert len(listed) == len(set(listed)) <= 40


def fp8(values: NDArray[np.float64], dtype: str = "float8_e4m3") -> gp.GPUArray:
    return gp.from_numpy(values.astype(np.float32)).astype(dtype)


def numbers(array: gp.GPUArray) -> NDArray[np.float64]:
    return array.astype("float32").to_numpy().astype(np.float64)


def repeated(scale: gp.GPUArray, shape: tuple[int, int]) -> NDArray[np.float64]:
    """The scale of every element."""
    values = numbers(scale)
    if values.size == 1:
        return values.reshape(1, 1)
    for axis in (0, 1):
        if values.shape[axis] not in (1, shape[axis]):
            values = np.repeat(values, 128, axis)
    return values[: shape[0], : shape[1]]


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2"])
@pytest.mark.parametrize("shape", [(1, 2, 1), (3, 40, 129), (65, 257, 300), (130, 5, 16)], ids=str)
def test_fp8_with_every_kind_of_scale(shape: tuple[int, int, int], dtype: str) -> None:
    m, n, k = shape
    blocks, tall, wide = -(-k // 128), -(-m // 128), -(-n // 128)
    rng = np.random.default_rng()
    a, b = fp8(rng.standard_normal((m, k)), dtype), fp8(rng.standard_normal((n, k)), dtype).T
    for of_a in ((), (m,), (m, blocks), (tall, blocks)):
        for of_b in ((), (n,), (blocks, n), (blocks, wide)):
            x, y = (gp.from_numpy(np.asarray(rng.uniform(0.5, 2, s), np.float32)) for s in (of_a, of_b))
            left = numbers(a) * repeated(x if x.ndim != 1 else x[:, None], (m, k))
            right = numbers(b) * repeated(y if y.ndim != 1 else y[None], (k, n))
            want, size = left @ right, np.abs(left) @ np.abs(right)
            for result, rounding in (("float32", 0.0), ("bfloat16", BFLOAT16)):
                out = gp.full((m, n), float("nan"), result)
                assert gp.matmul_fp8(a, b, x, y, out=out) is out
                assert np.all(np.abs(numbers(out) - want) <= rounding * np.abs(want) + FP8 * size)


def test_which_fp8_products_tensor_cores_take() -> None:
    a, other = fp8(np.ones((256, 256))), fp8(np.ones((256, 256)), "float8_e5m2")
    every, lines, deep, square = gp.ones(()), gp.ones(256), gp.ones((256, 2)), gp.ones((2, 2))

    def refused(b: gp.GPUArray, x: gp.GPUArray, y: gp.GPUArray) -> bool:
        left, right = fp8_checked("test", a, b, x, y)
        return bool(tile_fp8.unscalable(a, b, left, right))

    for x in (every, lines, deep, square):
        for y in (every, lines, square, deep.T):
            assert refused(a, x, y) == (y.shape == (2, 256) or (x.ndim == 2 and y is lines))
    assert refused(other, every, every)
    assert gp.ops.matmul_fp8_plan(a, other).backend == ("numpy" if is_sim() else "plain")
