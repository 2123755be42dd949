"""Reductions without NaN, averages, covariances and histograms beside NumPy's: types, axes, edges, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("operation_backend")

Host = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def numbers(shape: Any, dtype: str = "float64", holes: float = 0.0) -> Host:
    rng = np.random.default_rng()
    found = np.asarray(rng.integers(-9, 10, shape)).astype("int64")
    found = np.abs(found) if dtype[0] in "ub" else found
    made = np.asarray(found if np.dtype(dtype).kind in "biu" else found / 2).astype(dtype)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * made[..., ::-1]
    if holes:
        made[rng.random(shape) < holes] = np.nan
    return made


def same(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    close = {"float16": 4e-3, "float32": 2e-6, "complex64": 2e-6}.get(expected.dtype.name, 1e-12)
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=close, atol=close)


# ---- without NaN ----

NANS = ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax")


@pytest.mark.parametrize("name", NANS)
def test_reductions_without_nan(name: str) -> None:
    for dtype in ("float64", "float32", "int32", "uint8"):
        a = numbers((3, 4, 5), dtype, holes=0.3 if dtype[0] == "f" else 0)
        if dtype[0] == "f":
            a[1, 2] = np.nan
            a = a / 4
        x = gp.from_numpy(a)
        for axis in (None, 0, -1, (0, 2), (0, 1, 2)):
            for keepdims in (False, True):
                same(getattr(gp, name)(x, axis, keepdims=keepdims), getattr(np, name)(a, axis, keepdims=keepdims))
        same(getattr(gp, name)(x[::2, ::-1], 1), getattr(np, name)(a[::2, ::-1], 1))


def test_reductions_without_nan_of_halves_infinities_and_nothing() -> None:
    a = np.array([[1, np.inf, np.nan], [np.nan] * 3, [-np.inf, np.inf, 2]])
    x = gp.from_numpy(a)
    for name in NANS:
        same(getattr(gp, name)(x, 1), getattr(np, name)(a, 1))
    for name in ("nansum", "nanprod", "nanmean", "nanvar"):
        same(getattr(gp, name)(gp.zeros((2, 0), "float64"), 1), getattr(np, name)(np.zeros((2, 0)), 1))
    with pytest.raises(ValueError):
        gp.nanmin(gp.zeros((2, 0)), 1)
    half = numbers((4, 9), "float16", holes=0.3)
    for name in ("nansum", "nanmean", "nanmin", "nanstd"):
        same(getattr(gp, name)(gp.from_numpy(half), 1), getattr(np, name)(half.astype("float32"), 1).astype("float16"))
    narrow = gp.from_numpy(half.astype("float32")).astype("bfloat16")
    assert gp.nanmean(narrow).dtype == gp.bfloat16
    same(gp.nanmax(narrow, 0).astype("float32"), np.nanmax(half.astype("float32"), 0))
    same(gp.nanvar(x[2:, 2:], ddof=1), np.nanvar(a[2:, 2:], ddof=1))


def test_places_and_scans_without_nan() -> None:
    a = numbers((4, 6), holes=0.3)
    a[:, 0] = a[0] = 1  # no row and no column is NaN only
    x = gp.from_numpy(a)
    for axis in (None, 0, 1):
        for name in ("nanargmin", "nanargmax", "nancumsum", "nancumprod"):
            same(getattr(gp, name)(x, axis), getattr(np, name)(a, axis))
    a[2] = np.nan
    with pytest.raises(ValueError, match="NaN only"):
        gp.nanargmax(gp.from_numpy(a), 1)
    same(gp.nancumsum(gp.from_numpy(numbers(5, "int8") * 0 + 3)), np.nancumsum(np.full(5, 3, np.int8)))


# ---- averages ----


def test_averages() -> None:
    for dtype in ("float64", "float32", "int16"):
        a, w = numbers((3, 4), dtype), np.abs(numbers((3, 4), dtype)) + 1
        x, y = gp.from_numpy(a), gp.from_numpy(w)
        for axis in (None, 0, 1, (0, 1)):
            same(gp.average(x, axis), np.average(a, axis))
            for mine, theirs in zip(
                gp.average(x, axis, y, returned=True), np.average(a, axis, w, returned=True), strict=True
            ):
                same(mine, theirs)
        same(gp.average(x, 1, y[0], keepdims=True), np.average(a, 1, w[0], keepdims=True))
        same(gp.average(x, (1, 0), y.T), np.average(a, (1, 0), w.T))
        same(gp.ptp(x, 1), np.ptp(a, 1))
        same(gp.ptp(x, None, keepdims=True), np.ptp(a, None, keepdims=True))
    with pytest.raises(ZeroDivisionError, match="sum to zero"):
        gp.average(x, 1, gp.zeros((3, 4)))
    with pytest.raises(TypeError, match="axis"):
        gp.average(x, None, gp.ones(4))
    with pytest.raises(gp.ShapeError, match="weights"):
        gp.average(x, 0, gp.ones(4))
    with pytest.raises(gp.DTypeError, match="ptp"):
        gp.ptp(x > 0)


def test_covariances() -> None:
    rng = np.random.default_rng()
    for dtype in ("float64", "float32", "int32", "complex128"):
        a, b = numbers((3, 7), dtype), numbers((2, 7), dtype)
        x, y = gp.from_numpy(a), gp.from_numpy(b)
        for given in ({}, {"bias": True}, {"ddof": 0}, {"ddof": 2}):
            same(gp.cov(x, **given), np.cov(a, **given))
        same(gp.cov(x, y), np.cov(a, b))
        same(gp.cov(x.T, y.T, rowvar=False), np.cov(a.T, b.T, rowvar=False))
        same(gp.cov(x[0]), np.cov(a[0]))
        same(gp.corrcoef(x, y), np.corrcoef(a, b))
        same(gp.corrcoef(x[0]), np.corrcoef(a[0]))
    f, w = rng.integers(1, 4, 7), rng.random(7) + 0.1
    a = numbers((3, 7))
    x = gp.from_numpy(a)
    for given in ({"fweights": f}, {"aweights": w}, {"fweights": f, "aweights": w}, {"aweights": w, "ddof": 0}):
        same(
            gp.cov(x, **{key: gp.from_numpy(v) if key != "ddof" else v for key, v in given.items()}), np.cov(a, **given)
        )
    same(gp.cov(x.astype("float32"), dtype="float32"), np.cov(a.astype("float32"), dtype=np.float32))
    with pytest.warns(RuntimeWarning, match="freedom"):
        gp.cov(x[:, :1])
    for call, error in (
        (lambda: gp.cov(gp.ones((2, 2, 2))), ValueError),
        (lambda: gp.cov(x, ddof=0.5), ValueError),
        (lambda: gp.cov(x, aweights=gp.from_numpy(-w)), ValueError),
        (lambda: gp.cov(x, fweights=gp.from_numpy(w)), TypeError),
        (lambda: gp.cov(x, aweights=gp.ones(3)), ValueError),
    ):
        with pytest.raises(error):
            call()


# ---- histograms ----


def pairs(found: Any, expected: Any) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        same(mine, theirs)


def test_histograms() -> None:
    for dtype in ("float64", "float32", "int64", "int8", "uint8"):
        a = numbers((6, 50), dtype)
        x = gp.from_numpy(a)
        for given in (
            {}, {"bins": 7}, {"bins": 4, "range": (-2, 3)}, {"bins": 3, "range": (1.5, 1.5)}, {"density": True},
            {"bins": [-3, -1.5, 0, 0, 4]}, {"bins": [0, 1, 1], "density": False}, {"bins": 2, "range": (100, 101)},
        ):  # fmt: skip
            pairs(gp.histogram(x, **given), np.histogram(a, **given))
        pairs(gp.histogram(x.T[::2], 5), np.histogram(a.T[::2], 5))
        same(gp.histogram_bin_edges(x, 6), np.histogram_bin_edges(a, 6))
    pairs(gp.histogram(gp.zeros(0, "float64"), 3), np.histogram(np.zeros(0), 3))
    edges = np.array([-2, 0.5, 3])
    pairs(gp.histogram(x, gp.from_numpy(edges)), np.histogram(a, edges))
    a = np.array([0.0, 1, np.nan, np.inf, 5, -np.inf, 0.2])
    pairs(gp.histogram(gp.from_numpy(a), 5, (0, 5)), np.histogram(a, 5, (0, 5)))
    with pytest.raises(ValueError, match="finite"):
        gp.histogram(gp.from_numpy(a))
    with pytest.warns(RuntimeWarning, match="bool"):
        same(gp.histogram(gp.from_numpy(a > 0), 2)[0], np.array([3, 4]))


def test_histograms_of_narrow_floats() -> None:
    a = numbers(300, "float16")
    pairs(gp.histogram(gp.from_numpy(a), 8), np.histogram(a, 8))
    found = gp.histogram(gp.from_numpy(a.astype("float32")).astype("bfloat16"), 8)
    same(found[0], np.histogram(a.astype("float32"), 8)[0])


def test_weighted_histograms() -> None:
    a, w = numbers(200), numbers(200, "float32")
    x, y = gp.from_numpy(a), gp.from_numpy(w)
    for given in ({}, {"range": (-3, 2)}, {"density": True}):
        same(
            gp.histogram(x, 6, weights=y, **given)[0].astype("float64"),
            np.histogram(a, 6, weights=w.astype(float), **given)[0],
        )
    for weights in (numbers(200, "int32"), numbers(200, "complex128")):
        pairs(gp.histogram(x, 6, weights=gp.from_numpy(weights)), np.histogram(a, 6, weights=weights))
    with pytest.raises(gp.ShapeError, match="weights"):
        gp.histogram(x, weights=y[:5])


@pytest.mark.parametrize("name", ["auto", "fd", "scott", "doane", "sturges", "rice", "sqrt", "stone"])
def test_estimators_of_bins(name: str) -> None:
    rng = np.random.default_rng()
    for a in (rng.standard_normal(150), rng.integers(0, 4, 90), np.zeros(5), np.zeros(0), rng.random(2)):
        same(gp.histogram_bin_edges(gp.from_numpy(a), name), np.histogram_bin_edges(a, name))
    if name != "stone":
        same(gp.histogram_bin_edges(gp.from_numpy(a), name, (0.1, 0.9)), np.histogram_bin_edges(a, name, (0.1, 0.9)))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: gp.histogram(x, 0), ValueError), (lambda x: gp.histogram(x, 2.5), TypeError),
        (lambda x: gp.histogram(x, "best"), ValueError), (lambda x: gp.histogram(x, "fd", weights=x), TypeError),
        (lambda x: gp.histogram(x, [2, 1]), ValueError), (lambda x: gp.histogram(x, [[1, 2]]), ValueError),
        (lambda x: gp.histogram(x, gp.asarray([2, 1])), ValueError), (lambda x: gp.histogram(x, 5, (2, 1)), ValueError),
        (lambda x: gp.histogram(x, 5, (0, np.inf)), ValueError),
        (lambda x: gp.histogram(x.astype("complex64")), TypeError),
        (lambda x: gp.bincount(x), TypeError), (lambda x: gp.bincount(gp.asarray([1, -1])), ValueError),
        (lambda x: gp.bincount(gp.asarray([[1]])), ValueError), (lambda x: gp.bincount(gp.asarray([1]), x), ValueError),
        (lambda x: gp.bincount(gp.asarray([1]), None, -1), ValueError),
        (lambda x: gp.digitize(x, [1, 3, 2]), ValueError),
        (lambda x: gp.digitize(x, gp.asarray([1, 3, 2])), ValueError), (lambda x: gp.digitize(x, [[1]]), ValueError),
    ],
)  # fmt: skip
def test_what_histograms_refuse(call: Callable[..., Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(gp.ones(4, "float64"))


def test_histograms_of_several_axes() -> None:
    a, b, w = numbers(80), numbers(80, "float32"), numbers(80)
    x, y, z = (gp.from_numpy(each) for each in (a, b, w))
    for given in (
        {}, {"bins": 4}, {"bins": [3, 5]}, {"bins": [[-2, 0, 3], 4]}, {"density": True}, {"range": [(-2, 2), (0, 3)]},
    ):  # fmt: skip
        pairs(gp.histogram2d(x, y, **given), np.histogram2d(a, b, **given))
    pairs(gp.histogram2d(x, y, 3, weights=z), np.histogram2d(a, b, 3, weights=w))
    points = numbers((40, 3))
    counts, edges = gp.histogramdd(gp.from_numpy(points), (2, 3, 4))
    expected, theirs = np.histogramdd(points, (2, 3, 4))
    same(counts, expected)
    pairs(edges, theirs)
    with pytest.raises(ValueError):
        gp.histogramdd([x, y], [1, 2, 3])


def test_bincount_and_digitize() -> None:
    rng = np.random.default_rng()
    for dtype in ("int64", "uint8", "int32"):
        a = rng.integers(0, 12, 100).astype(dtype)
        same(gp.bincount(gp.from_numpy(a)), np.bincount(a))
        same(gp.bincount(gp.from_numpy(a)[::-3], minlength=20), np.bincount(a[::-3], minlength=20))
        w = rng.standard_normal(100)
        w[3] = np.nan
        same(gp.bincount(gp.from_numpy(a), gp.from_numpy(w)), np.bincount(a, w))
    same(gp.bincount(gp.zeros(0, "int64"), minlength=2), np.bincount(np.zeros(0, np.int64), minlength=2))
    same(gp.bincount(gp.asarray([True, False, True])), np.bincount([True, False, True]))
    same(gp.bincount(gp.asarray([3, 1], "uint64")), np.bincount(np.array([3, 1])))
    with pytest.raises(ValueError, match="negative"):
        gp.bincount(gp.asarray([2**63 + 5], "uint64"))
    x = numbers((4, 5))
    for edges in ([-3, 0, 2.5], [4, 1, 1, -2], [1, 1], [0], []):
        for right in (False, True):
            if edges:
                same(gp.digitize(gp.from_numpy(x), edges, right), np.digitize(x, edges, right))
                same(gp.digitize(gp.from_numpy(x), gp.asarray(edges), right), np.digitize(x, edges, right))


def test_numpys_functions_come_here() -> None:
    a = numbers((3, 8))
    x = gp.from_numpy(a)
    for call in (
        lambda m: np.nanmean(m, axis=0), lambda m: np.nanvar(m, ddof=1), lambda m: np.nanargmin(m, axis=1), np.ptp,
        lambda m: np.average(m, axis=0), np.cov, np.corrcoef, lambda m: np.digitize(m, [0, 1]),
        lambda m: np.histogram(m, bins=4, range=(0, 1))[0], lambda m: np.bincount((m * m).astype("int64").ravel()),
    ):  # fmt: skip
        same(call(x), call(a))
