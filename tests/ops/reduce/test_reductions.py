"""Reductions against NumPy and against float64: values, types, axes, layouts, empty inputs, nan, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("operation_backend")

INTEGERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((), None), ((1,), 0), ((31,), None), ((33, 2), 0), ((2, 33), 1), ((3, 1023), (0, 1)), ((1023, 3), 0),
    ((4097,), 0), ((2, 4097), -1), ((300, 40), 0), ((70000,), None), ((3, 4, 5, 6), (1, 3)), ((3, 4, 5, 6), (0, 2)),
    ((5, 1, 7), 1), ((4, 6), ()), ((2, 20000), 1), ((9000, 2), 0),
]  # fmt: skip


def sample(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(len(shape) + sum(shape))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape)).astype(dtype) if kind == "c" else values.astype(dtype)


def near(found: gp.GPUArray, expected: Any, dtype: Any, scale: Any = 1.0, rounds: float = 1.0) -> None:
    """found has that type, and differs from float64 by its rounding and a little of its parts."""
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == dtype
    values = found.to_numpy() if found.dtype != "bfloat16" else found.astype("float32").to_numpy()
    own = 2.0**-8 if found.dtype == "bfloat16" else float(np.finfo(values.dtype).eps)
    added = own if values.dtype.itemsize >= 8 * (values.dtype.kind == "f") and own < 1e-10 else min(own, 2.0**-23)
    slack = rounds * own * np.abs(expected) + 4 * added * np.asarray(scale)
    assert np.all(np.abs(values - expected) <= slack), np.max(np.abs(values - expected) / slack)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=repr)
def test_every_reduction_on_shapes(shape: tuple[int, ...], axis: Any) -> None:
    a = sample(shape, "float32")
    x, wide = gp.from_numpy(a), a.astype(np.float64)
    magnitude = np.abs(wide).sum(axis=axis)
    count = wide.size / max(magnitude.size, 1)
    near(gp.sum(x, axis), wide.sum(axis=axis), "float32", magnitude)
    near(gp.mean(x, axis), wide.mean(axis=axis), "float32", magnitude / count, 2)
    near(gp.var(x, axis), wide.var(axis=axis), "float32", (wide**2).mean(axis=axis), 4)
    near(gp.std(x, axis), wide.std(axis=axis), "float32", 1e-3, 4)
    near(gp.norm(x, axis), np.sqrt((wide**2).sum(axis=axis)), "float32", 0, 4)
    near(gp.logsumexp(x, axis), np.log(np.exp(wide).sum(axis=axis)), "float32", 1 + np.abs(wide).max(), 4)
    for name in ("max", "min", "any", "all", "count_nonzero"):
        found, expected = getattr(gp, name)(x, axis), getattr(np, name)(a, axis=axis)
        np.testing.assert_array_equal(found.to_numpy(), expected)
        kept = getattr(gp, name)(x, axis, keepdims=True)
        np.testing.assert_array_equal(kept.to_numpy(), getattr(np, name)(a, axis=axis, keepdims=True))
        assert found.dtype == np.asarray(expected).dtype
    if axis is None or (isinstance(axis, int) and a.ndim):
        for name in ("argmax", "argmin"):
            found = getattr(gp, name)(x, axis)
            assert found.dtype == "int64"
            np.testing.assert_array_equal(found.to_numpy(), getattr(a, name)(axis))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_exact(dtype: str) -> None:
    a = sample((37, 29), dtype)
    x = gp.from_numpy(a)
    for axis in (None, 0, 1):
        for name in ("sum", "prod", "max", "min", "any", "all"):
            found, expected = getattr(x, name)(axis), getattr(a, name)(axis)
            assert found.dtype == expected.dtype, name
            np.testing.assert_array_equal(found.to_numpy(), expected)
        for name in ("argmax", "argmin"):
            np.testing.assert_array_equal(getattr(x, name)(axis).to_numpy(), getattr(a, name)(axis))
        np.testing.assert_allclose(x.mean(axis).to_numpy(), a.mean(axis), rtol=1e-13, atol=1e-3)
        np.testing.assert_allclose(x.var(axis).to_numpy(), a.var(axis), rtol=1e-12)
        np.testing.assert_allclose(gp.norm(x, axis).to_numpy(), np.sqrt((a.astype(float) ** 2).sum(axis)), rtol=1e-12)
        assert x.mean(axis).dtype == x.std(axis).dtype == gp.norm(x, axis).dtype == "float64"
        np.testing.assert_array_equal(gp.count_nonzero(x, axis).to_numpy(), np.count_nonzero(a, axis=axis))
    np.testing.assert_array_equal(x.sum(0, "int16").to_numpy(), a.sum(0, "int16"))
    np.testing.assert_array_equal(x.sum(0, "uint64").to_numpy(), a.sum(0, "uint64"))
    np.testing.assert_array_equal(x.prod(1, "int32").to_numpy(), a.prod(1, "int32"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("size", [1, 2, 31, 33, 1023, 4097])
def test_error_against_float64(dtype: str, size: int) -> None:
    """16-bit types are added in float32 and rounded once."""
    x = gp.from_numpy(sample((3, size), "float32")).astype(dtype)
    wide = x.astype("float64").to_numpy()
    for axis in (0, 1, None):
        magnitude = np.abs(wide).sum(axis=axis)
        count = wide.size / magnitude.size
        near(x.sum(axis), wide.sum(axis=axis), dtype, magnitude)
        near(x.mean(axis), wide.mean(axis=axis), dtype, magnitude / count)
        near(x.var(axis), wide.var(axis=axis), dtype, (wide**2).mean(axis=axis))
        near(gp.norm(x, axis), np.sqrt((wide**2).sum(axis=axis)), dtype)
        near(gp.logsumexp(x, axis), np.log(np.exp(wide).sum(axis=axis)), dtype, 8)
        np.testing.assert_array_equal(x.max(axis).astype("float64").to_numpy(), wide.max(axis=axis))
        np.testing.assert_array_equal(x.argmin(axis).to_numpy(), wide.argmin(axis=axis))
    near(x.prod(0), wide.prod(axis=0), dtype)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex(dtype: str) -> None:
    a = sample((13, 21), dtype)
    x = gp.from_numpy(a)
    tolerance = 1e-5 if dtype == "complex64" else 1e-13
    for axis in (None, 0, 1):
        for name in ("sum", "mean"):
            found = getattr(x, name)(axis)
            assert found.dtype == dtype
            np.testing.assert_allclose(found.to_numpy(), getattr(a, name)(axis), rtol=tolerance, atol=tolerance)
        length = gp.norm(x, axis)
        assert length.dtype == a.real.dtype
        np.testing.assert_allclose(length.to_numpy(), np.sqrt((np.abs(a) ** 2).sum(axis)), rtol=tolerance)
        np.testing.assert_array_equal(gp.count_nonzero(x, axis).to_numpy(), np.count_nonzero(a, axis=axis))
    np.testing.assert_allclose(x.prod(1).to_numpy(), a.prod(1), rtol=20 * tolerance)
    np.testing.assert_array_equal(gp.any(gp.from_numpy(np.array([0, 1j, -0.0], dtype))).to_numpy(), True)
    for name in ("max", "argmin", "logsumexp"):
        with pytest.raises(gp.DTypeError, match=f"{name}: not defined for complex"):
            getattr(gp, name)(x)


def test_large_sums_do_not_lose_small_terms() -> None:
    """A running sum in float32 stops growing at 2**24, in float16 at 2048; a far mean costs the variance no digits."""
    assert gp.sum(gp.ones(1 << 25, "int8")).item() == 1 << 25
    ones = gp.ones((1 << 20,), "float16")
    assert gp.mean(ones).item() == 1.0
    assert gp.sum(ones.reshape(1024, 1024), 1).to_numpy().tolist() == [1024.0] * 1024
    a = np.full(200_000, 0.1, np.float32)
    assert abs(gp.sum(gp.from_numpy(a)).item() - a.astype(np.float64).sum()) < 8e-3, "four units of the result"
    far = (1e4 + sample((50_000,), "float64")).astype(np.float32)
    np.testing.assert_allclose(gp.var(gp.from_numpy(far)).item(), far.astype(np.float64).var(), rtol=1e-4)


def views(a: np.ndarray[Any, Any], x: gp.GPUArray) -> list[tuple[np.ndarray[Any, Any], gp.GPUArray]]:
    rows, columns = a.shape
    keys: list[Any] = [np.s_[:], np.s_[:, 1:], np.s_[::-1], np.s_[:, ::-2], np.s_[1::3, 4:], np.s_[:, : columns // 2]]
    found = [(a[key], x[key]) for key in keys]
    found += [(b.T, y.T) for b, y in found]
    split = a[:, : columns // 4 * 4].reshape(rows, 4, -1)
    found.append((split.transpose(1, 0, 2), x[:, : columns // 4 * 4].reshape(*split.shape).transpose(1, 0, 2)))
    return found


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex128"])
@pytest.mark.parametrize("shape", [(7, 40), (33, 65), (260, 9)])
def test_strided_inputs(dtype: str, shape: tuple[int, int]) -> None:
    a = sample(shape, dtype)
    tolerance = {"float32": 1e-5, "int16": 0}.get(dtype, 1e-13)
    for b, y in views(a, gp.from_numpy(a)):
        for axis in (None, *range(b.ndim), *([(0, 2), (1, 2)] if b.ndim == 3 else [])):
            np.testing.assert_allclose(y.sum(axis).to_numpy(), b.sum(axis), rtol=tolerance, atol=10 * tolerance)
            np.testing.assert_array_equal(y.any(axis).to_numpy(), b.any(axis))
            if dtype != "complex128":
                np.testing.assert_array_equal(y.max(axis).to_numpy(), b.max(axis))
                if not isinstance(axis, tuple):
                    np.testing.assert_array_equal(y.argmax(axis).to_numpy(), b.argmax(axis))
                    np.testing.assert_array_equal(y.argmin(axis).to_numpy(), b.argmin(axis))


def test_strided_inputs_are_read_in_place() -> None:
    from pygpukit import _core

    x = gp.ones((64, 128))
    for view, axis in ((x[:, ::2], 1), (x[::2, 1:], 0), (x.T, 0), (x.T, 1)):
        before = _core.pool_stats().allocation_count
        gp.sum(view, axis)
        assert _core.pool_stats().allocation_count - before == 1, "only the result is allocated"


# ---- nan, infinities, zeros, ties ----


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_inf_and_ties(dtype: str) -> None:
    a = np.array(
        [[1, np.nan, 3, np.nan], [np.inf, 2, -np.inf, 2], [-np.inf] * 4, [0.0, -0.0, 0.0, -0.0], [7, 7, -7, -7]], dtype
    )
    x = gp.from_numpy(a)
    with np.errstate(all="ignore"):
        for name in ("sum", "max", "min", "argmax", "argmin", "any", "all", "mean", "var", "std", "prod"):
            for axis in (0, 1):
                np.testing.assert_array_equal(getattr(x, name)(axis).to_numpy(), getattr(a, name)(axis), err_msg=name)
        for name in ("max", "min", "argmax", "argmin", "sum"):
            np.testing.assert_array_equal(getattr(x, name)().to_numpy(), getattr(a, name)(), err_msg=name)
        expected = np.array([np.nan, np.inf, -np.inf, np.log(4), np.log(2 * np.exp(7) + 2 * np.exp(-7))])
    np.testing.assert_allclose(gp.logsumexp(x, 1).to_numpy(), expected, rtol=1e-3)
    assert np.signbit(gp.sum(gp.full(5, -0.0, dtype)).to_numpy()) == np.signbit(np.full(5, -0.0, dtype).sum())
    assert gp.logsumexp(gp.full(1000, 300.0, dtype)).item() == pytest.approx(300 + np.log(1000), rel=1e-3)


def test_the_first_of_equal_elements() -> None:
    for size, at in ((10, 3), (4097, 255), (70_000, 12_345), (70_000, 65_000)):
        a = np.zeros(size, np.float32)
        a[at:] = 1
        x = gp.from_numpy(a)
        assert gp.argmax(x).item() == at
        assert gp.argmin(x).item() == 0
        assert gp.argmin(-x).item() == at
        a[at + 1 :: 2] = np.nan
        assert gp.argmax(gp.from_numpy(a)).item() == gp.argmin(gp.from_numpy(a)).item() == at + 1
    wide = np.tile(np.arange(5, dtype=np.int32), (600, 1))
    assert gp.argmax(gp.from_numpy(wide), 0).to_numpy().tolist() == [0] * 5


# ---- empty inputs ----


def test_empty_inputs() -> None:
    for shape, axis in (((0,), None), ((0, 3), 0), ((3, 0), 1), ((0, 3), 1), ((2, 0, 3), (0, 1))):
        a = np.zeros(shape, np.float32)
        x = gp.from_numpy(a)
        for name in ("sum", "prod", "any", "all", "count_nonzero"):
            found = getattr(gp, name)(x, axis)
            np.testing.assert_array_equal(found.to_numpy(), getattr(np, name)(a, axis=axis), err_msg=name)
        assert not np.signbit(gp.sum(x, axis).to_numpy()).any()
        with np.errstate(all="ignore"), pytest.warns(RuntimeWarning) if a.sum(axis=axis).size else np.errstate():
            expected = np.mean(a, axis=axis)
        np.testing.assert_array_equal(gp.mean(x, axis).to_numpy(), expected)
        assert np.isnan(gp.var(x, axis).to_numpy()).all()
        assert (gp.norm(x, axis).to_numpy() == 0).all()
        assert (gp.logsumexp(x, axis).to_numpy() == -np.inf).all()
    x = gp.zeros((0, 3))
    assert gp.max(x, 1).shape == gp.argmin(x, 1).shape == (0,)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(gp.ShapeError, match=rf"{name}: shape \(0, 3\) has no elements along axes \(0,\)"):
            getattr(gp, name)(x, 0)
        with pytest.raises(ValueError):
            getattr(gp, name)(x)


# ---- arguments ----


def test_documented_forms() -> None:
    a = sample((6, 5), "float32")
    x = gp.from_numpy(a)
    for found in (gp.sum(x), gp.mean(x), gp.max(x), gp.min(x), gp.argmax(x)):
        assert found.shape == ()
    assert gp.argmax(x).item() == a.argmax()
    for axis in (0, 1):
        np.testing.assert_allclose(gp.sum_axis(x, axis).to_numpy(), a.sum(axis), rtol=1e-5, atol=1e-6)
    assert gp.amax is gp.max
    assert gp.amin is gp.min


def test_dtype_and_ddof() -> None:
    a = sample((40, 3), "float32")
    x = gp.from_numpy(a)
    near(gp.sum(x, 0, "float64"), a.sum(0, np.float64), "float64", np.abs(a).sum(0))
    near(gp.mean(x, 0, "float64"), a.mean(0, np.float64), "float64", np.abs(a).sum(0))
    assert gp.mean(gp.ones(3, "int32"), dtype="float32").dtype == "float32"
    np.testing.assert_allclose(x.var(0, ddof=1).to_numpy(), a.var(0, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(x.std(ddof=1).to_numpy(), a.std(ddof=1), rtol=1e-5)
    assert gp.var(gp.ones(1), ddof=1).to_numpy() != gp.var(gp.ones(1), ddof=1).to_numpy()  # 0 / 0
    np.testing.assert_array_equal(gp.sum(x, 0, "int32").to_numpy(), a.astype(np.int32).sum(0))
    with pytest.raises(gp.DTypeError, match="mean: dtype='int32' cannot hold the result"):
        gp.mean(x, dtype="int32")


def test_out() -> None:
    a = sample((12, 10), "float32")
    x = gp.from_numpy(a)
    expected = gp.sum(x, 1).to_numpy()
    out = gp.zeros(12)
    assert gp.sum(x, 1, out=out) is out
    np.testing.assert_array_equal(out.to_numpy(), expected)
    strided = gp.zeros((12, 2))
    gp.sum(x, 1, out=strided[:, 1])
    np.testing.assert_array_equal(strided.to_numpy(), np.stack([np.zeros(12), expected], 1))
    wide = gp.zeros((1, 10), "float64")
    gp.max(x, 0, out=wide, keepdims=True)
    np.testing.assert_array_equal(wide.to_numpy(), a.max(0, keepdims=True))
    gp.sum(x, 0, out=x[3])  # inside the input
    np.testing.assert_allclose(x.to_numpy()[3], a.sum(0), rtol=1e-5, atol=1e-6)
    with pytest.raises(gp.ShapeError, match=r"sum: out has shape \(3,\), the result has shape \(12,\)"):
        gp.sum(x, 1, out=gp.zeros(3))
    with pytest.raises(gp.DTypeError, match="mean: a float32 result cannot be stored in an array of int32"):
        gp.mean(x, 1, out=gp.zeros(12, "int32"))


def test_refusals() -> None:
    x = gp.ones((2, 3))
    for axis in (2, -3, (0, 5)):
        with pytest.raises(gp.ShapeError, match="sum: axis"):
            gp.sum(x, axis)
    with pytest.raises(gp.ShapeError, match="twice"):
        gp.sum(x, (0, -2))
    with pytest.raises(TypeError, match="axis is None, an int"):
        gp.sum(x, 1.0)  # type: ignore[arg-type]
    with pytest.raises(gp.ShapeError, match="one int or None"):
        gp.argmax(x, (0, 1))  # type: ignore[arg-type]
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        gp.sum(np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(gp.DTypeError, match="storage type"):
        gp.max(gp.empty(4, "float8_e4m3"))


# ---- the same bits ----


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("columns", [5, 1023, 20_000])
def test_a_row_does_not_depend_on_its_neighbours(dtype: str, columns: int) -> None:
    x = gp.from_numpy(sample((9, columns), "float32")).astype(dtype)
    for op in (gp.sum, gp.mean, gp.var, gp.norm, gp.logsumexp):
        whole = op(x, 1).to_numpy()
        np.testing.assert_array_equal(op(x, 1).to_numpy(), whole)
        np.testing.assert_array_equal(op(x[::-1], 1).to_numpy(), whole[::-1])
        np.testing.assert_array_equal(op(x[3:4], 1).to_numpy(), whole[3:4])
        padded = gp.zeros((9, columns + 3), dtype)
        padded[:, 2:-1] = x
        np.testing.assert_array_equal(op(padded[:, 2:-1], 1).to_numpy(), whole, err_msg="alignment")
