"""Quantiles and medians beside NumPy's: every method, any axes, types, NaN, infinities, nothing, weights."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.ops.statistics.methods import METHODS

pytestmark = pytest.mark.usefixtures("operation_backend")

Host = np.ndarray[Any, Any]
DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def numbers(shape: tuple[int, ...], dtype: str = "float64", holes: float = 0.0) -> Host:
    rng = np.random.default_rng()
    found = np.asarray(rng.integers(-50, 50, shape)).astype(dtype) if dtype[0] in "iu" else (
        np.asarray(rng.standard_normal(shape) * 20).astype(dtype)
    )  # fmt: skip
    if holes:
        found[rng.random(shape) < holes] = np.nan
    return found


def same(found: gp.GPUArray, expected: Any) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    close = {"float16": 2e-3, "float32": 1e-6}.get(expected.dtype.name, 1e-13)
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=close, atol=close * 50)


QUANTILES = (0, 0.5, 0.3, 0.95, [0.1, 0.9, 1 / 3], [[0.2, 0.5], [0.75, 1.0]], [], [0, 1])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_numpys(method: str) -> None:
    for length in (1, 2, 5, 11):
        for holes in (0.0, 0.3):
            a = numbers((3, length), holes=holes)
            x = gp.from_numpy(a)
            for q in QUANTILES:
                same(gp.quantile(x, q, axis=-1, method=method), np.quantile(a, q, axis=-1, method=method))
                same(gp.nanquantile(x, q, axis=-1, method=method), np.nanquantile(a, q, axis=-1, method=method))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "int8", "uint8", "uint64"])
def test_types_are_numpys(dtype: str) -> None:
    a = numbers((4, 6), dtype) if dtype != "int8" else numbers((4, 6), dtype) // 2
    x = gp.from_numpy(a)
    for q in (50, 37.5, np.float64(20), [25, 75], np.array([10.0])):
        for method in ("linear", "lower", "hazen", "inverted_cdf", "midpoint"):
            same(gp.percentile(x, q, method=method), np.percentile(a, q, method=method))
            same(gp.nanpercentile(x, q, 0, method=method), np.nanpercentile(a, q, 0, method=method))
    same(gp.median(x), np.median(a))
    same(gp.median(x[:, 1::2], 1), np.median(a[:, 1::2], 1))
    same(gp.nanmedian(x.T, 1), np.nanmedian(a.T, 1))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (-1, 0), (0, 1, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_and_keepdims(axis: Any, keepdims: bool) -> None:
    a = numbers((3, 4, 5), holes=0.2)
    x = gp.from_numpy(a)
    for name in ("median", "nanmedian"):
        same(getattr(gp, name)(x, axis, keepdims=keepdims), getattr(np, name)(a, axis, keepdims=keepdims))
    for name in ("quantile", "nanquantile"):
        for q in (0.4, [0.4, 0.5]):
            if axis == () and name == "nanquantile":
                continue  # NumPy has no answer
            found = getattr(gp, name)(x, q, axis, keepdims=keepdims)
            same(found, getattr(np, name)(a, q, axis, keepdims=keepdims))


def test_infinities_and_rows_of_nan() -> None:
    a = np.array([[1, np.inf, -np.inf, 2], [np.nan] * 4, [np.inf] * 4, [np.nan, 3, np.nan, np.inf]])
    x = gp.from_numpy(a)
    for name in ("median", "nanmedian"):
        for axis in (0, 1):
            same(getattr(gp, name)(x, axis), getattr(np, name)(a, axis))
    for q in (0, 0.5, 0.7, 1):
        same(gp.quantile(x, q, 1), np.quantile(a, q, 1))
        same(gp.nanquantile(x, q, 1), np.nanquantile(a, q, 1))


def test_of_nothing() -> None:
    a, x = np.empty((3, 0)), gp.empty((3, 0), "float64")
    for name in ("median", "nanmedian"):
        for axis in (None, 0, 1):
            same(getattr(gp, name)(x, axis), getattr(np, name)(a, axis))
    assert np.isnan(gp.quantile(x, 0.5, 1).to_numpy()).all()
    same(gp.quantile(x, [0.5, 0.6], 0), np.empty((2, 0)))
    with pytest.raises(gp.ShapeError, match="no elements"):
        gp.quantile(gp.empty((3, 0), "int64"), 0.5, 1, method="lower")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: gp.quantile(x, 1.5), ValueError), (lambda x: gp.percentile(x, -1), ValueError),
        (lambda x: gp.percentile(x, [50, 101]), ValueError), (lambda x: gp.quantile(x, float("nan")), ValueError),
        (lambda x: gp.quantile(x, 0.5, 2), ValueError), (lambda x: gp.quantile(x, 0.5, (0, 0)), ValueError),
        (lambda x: gp.quantile(x, 0.5, method="best"), ValueError), (lambda x: gp.quantile(x, 1j), TypeError),
        (lambda x: gp.median(x, 5), ValueError), (lambda x: gp.median(x.astype("complex64")), TypeError),
        (lambda x: gp.quantile(x, 0.5, weights=x), ValueError), (lambda x: gp.quantile(x != 0, 0.5), TypeError),
        (lambda x: gp.quantile(x, 0.5, out=gp.empty(3, "float64")), ValueError),
        (lambda x: gp.quantile(x, 0.5, method="inverted_cdf", weights=x[0]), ValueError),
    ],
)  # fmt: skip
def test_what_is_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(gp.ones((3, 4), "float64"))


def test_out_and_quantiles_on_the_device() -> None:
    a = numbers((3, 4))
    x, out = gp.from_numpy(a), gp.empty((2, 3), "float64")
    assert gp.quantile(x, gp.asarray([0.2, 0.7]), 1, out) is out
    same(out, np.quantile(a, [0.2, 0.7], 1))
    assert gp.median(x, 1, out[0]) is not None
    same(out[0], np.median(a, 1))


def test_bfloat16_is_its_float32s_rounded() -> None:
    x = gp.from_numpy(numbers((5, 9), "float32")).astype("bfloat16")
    wide = x.astype("float32").to_numpy()
    for name in ("median", "nanmedian"):
        found = getattr(gp, name)(x, 1)
        assert found.dtype == gp.bfloat16
        np.testing.assert_array_equal(found.astype("float32").to_numpy(), np.median(wide, 1))
    found = gp.percentile(x, 30, 1)
    assert found.dtype == gp.bfloat16
    np.testing.assert_allclose(found.astype("float32").to_numpy(), np.percentile(wide, 30, 1), rtol=2e-2, atol=0.2)


def test_weights() -> None:
    rng = np.random.default_rng()
    a = numbers((4, 7))
    for weights in (rng.integers(0, 3, (4, 7)) + (np.arange(7) == 3), rng.random((4, 7)), rng.integers(1, 4, 7)):
        x, w = gp.from_numpy(a), gp.from_numpy(weights)
        for q in (0.3, [0.0, 0.5, 1.0]):
            expected = np.quantile(a, q, 1, method="inverted_cdf", weights=weights)
            same(gp.quantile(x, q, 1, method="inverted_cdf", weights=w), expected)
    for bad in (np.zeros((4, 7)), np.full((4, 7), np.nan), -weights * np.ones((4, 7))):
        with pytest.raises(ValueError, match="weights"):
            gp.quantile(x, 0.5, 1, method="inverted_cdf", weights=gp.from_numpy(bad))


def test_numpys_functions_come_here() -> None:
    a = numbers((3, 5))
    x = gp.from_numpy(a)
    same(np.median(x, axis=1), np.median(a, axis=1))
    same(np.percentile(x, [10, 20], axis=0), np.percentile(a, [10, 20], axis=0))
    same(np.nanquantile(x, 0.5, keepdims=True), np.nanquantile(a, 0.5, keepdims=True))
