"""Sorting, searching and unique values against NumPy; on both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY

pytestmark = pytest.mark.usefixtures("operation_backend")

NAMES = [dtype.name for dtype in DTYPES if dtype not in STORAGE_ONLY and dtype != "bfloat16"]
ROW_LIMIT = 8192  # the longest float32 row that one block sorts


def sample(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Many equal elements, both zeros, infinities and NaNs of both signs where the type has them."""
    rng = np.random.default_rng()
    kind = np.dtype(dtype).kind
    if kind in "biu":
        info = np.iinfo("int8" if kind == "b" else dtype)
        extremes = rng.choice(np.array([info.min, info.max, 0, 1], info.dtype), shape)
        return np.where(rng.random(shape) < 0.1, extremes, rng.integers(0, 100, shape).astype(info.dtype)).astype(dtype)

    def reals() -> np.ndarray[Any, Any]:
        special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], shape)
        return np.where(rng.random(shape) < 0.2, special, np.round(rng.standard_normal(shape) * 10, 1))

    if kind == "f":
        return reals().astype(dtype)
    both = np.empty(shape, dtype)
    both.real, both.imag = reals(), reals()
    return both


def same_bits(found: gp.GPUArray, expected: np.ndarray[Any, Any]) -> None:
    """Zeros keep their sign, and each NaN its place."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.to_numpy().tobytes() == np.ascontiguousarray(expected).tobytes()


def descending_order(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.shape[-1] - 1 - np.argsort(a[..., ::-1], -1, kind="stable")[..., ::-1]


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("shape", [(1,), (1000,), (4, 5, 67), (300, 9), (3, ROW_LIMIT + 9)])
def test_sort_and_argsort(shape: tuple[int, ...], dtype: str) -> None:
    a = sample(shape, dtype)
    x = gp.from_numpy(a)
    same_bits(gp.sort(x), np.sort(a, kind="stable"))
    same_bits(gp.argsort(x), np.argsort(a, kind="stable"))
    order = descending_order(a)
    same_bits(gp.argsort(x, descending=True), order)
    same_bits(gp.sort(x, descending=True), np.take_along_axis(a, order, -1))


@pytest.mark.parametrize("axis", [None, 0, 1, -2])
def test_axes_and_strides(axis: int | None) -> None:
    a = sample((6, 50, 7), "float32")
    for view in (np.s_[...], np.s_[::-1, ::3, 1:]):
        same_bits(gp.sort(gp.from_numpy(a)[view], axis), np.sort(a[view], axis, kind="stable"))
        same_bits(gp.argsort(gp.from_numpy(a)[view], axis), np.argsort(a[view], axis, kind="stable"))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing_to_sort(shape: tuple[int, ...]) -> None:
    x = gp.empty(shape)
    assert gp.sort(x).shape == gp.argsort(x).shape == shape
    assert gp.sort(x, None).shape == (0,)
    assert gp.unique(x).shape == (0,)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40), st.integers(1, 300), st.integers(1, 300), st.booleans())
def test_rows_of_any_length(rows: int, length: int, different: int, descending: bool) -> None:
    a = np.random.default_rng().integers(-different, different, (rows, length)).astype("int16")
    order = descending_order(a) if descending else np.argsort(a, kind="stable")
    same_bits(gp.argsort(gp.from_numpy(a), descending=descending), order)
    same_bits(gp.sort(gp.from_numpy(a), descending=descending), np.take_along_axis(a, order, -1))


@pytest.mark.parametrize("length", [ROW_LIMIT, ROW_LIMIT + 1, 2 * ROW_LIMIT, 5 * ROW_LIMIT + 1])
def test_where_the_algorithm_changes(length: int) -> None:
    a = np.random.default_rng().standard_normal((2, length), np.float32)
    same_bits(gp.sort(gp.from_numpy(a)), np.sort(a))
    same_bits(gp.argsort(gp.from_numpy(a)), np.argsort(a, kind="stable"))
    constant = np.ones((2, length), np.float32)
    same_bits(gp.argsort(gp.from_numpy(constant)), np.argsort(constant, kind="stable"))


def test_bfloat16() -> None:
    a = sample((3, 500), "float32")
    x = gp.from_numpy(a).astype("bfloat16")
    a = x.astype("float32").to_numpy()
    same_bits(gp.argsort(x), np.argsort(a, kind="stable"))
    np.testing.assert_array_equal(gp.sort(x).astype("float32").to_numpy(), np.sort(a, kind="stable"))


def test_method_sorts_in_place() -> None:
    a = sample((5, 60), "int32")
    x = gp.from_numpy(a)
    x[:, ::2].sort(0)
    a[:, ::2].sort(0)
    same_bits(x, a)
    same_bits(x.argsort(), np.argsort(a, kind="stable"))


def test_sorting_refuses() -> None:
    with pytest.raises(gp.DTypeError, match="storage type"):
        gp.sort(gp.empty(3, "float8_e4m3"))
    with pytest.raises(gp.ShapeError, match="axis 1 is out of range"):
        gp.argsort(gp.ones(3), 1)
    with pytest.raises(gp.DTypeError, match="from_numpy"):
        gp.sort([1, 2])  # type: ignore[arg-type]


# ---- topk ----


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("k", [0, 1, 7, 40])
def test_topk(k: int, axis: int, largest: bool) -> None:
    a = sample((40, 41), "float16")
    rows = np.moveaxis(a, axis, -1)
    order = (descending_order(rows) if largest else np.argsort(rows, kind="stable"))[:, :k]
    values, indices = gp.topk(gp.from_numpy(a), k, axis, largest)
    same_bits(indices, np.moveaxis(order, -1, axis))
    same_bits(values, np.moveaxis(np.take_along_axis(rows, order, -1), -1, axis))


def test_topk_of_a_long_row() -> None:
    a = np.random.default_rng().standard_normal((2, 50_001), np.float32)
    values, indices = gp.from_numpy(a).topk(50)
    order = np.argsort(-a, kind="stable")[:, :50]
    same_bits(indices, order)
    same_bits(values, np.take_along_axis(a, order, -1))


def test_topk_refuses() -> None:
    for k in (-1, 5):
        with pytest.raises(gp.ShapeError, match=f"k = {k} is not between 0 and 4"):
            gp.topk(gp.ones((3, 4)), k)


# ---- searchsorted ----


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", NAMES)
def test_searchsorted(dtype: str, side: Any) -> None:
    a = np.sort(sample((1000,), dtype), kind="stable")
    v = sample((20, 31), dtype)
    same_bits(gp.searchsorted(gp.from_numpy(a), gp.from_numpy(v), side), np.searchsorted(a, v, side))


def test_searchsorted_operands() -> None:
    a, v = np.arange(0, 50, 2), np.linspace(-3, 60, 33, dtype=np.float32)
    x = gp.from_numpy(a)
    same_bits(gp.searchsorted(x[::3], gp.from_numpy(v)[::-2]), np.searchsorted(a[::3], v[::-2]))
    same_bits(gp.searchsorted(x, 7.5), np.asarray(np.searchsorted(a, 7.5)))
    same_bits(gp.searchsorted(x[:0], gp.from_numpy(v)), np.searchsorted(a[:0], v))
    assert gp.searchsorted(x, gp.empty((0, 2))).shape == (0, 2)
    mixed = np.random.default_rng().permutation(a)
    y = gp.from_numpy(mixed)
    same_bits(y.searchsorted(gp.from_numpy(v), sorter=y.argsort()), np.searchsorted(a, v))


def test_searchsorted_refuses() -> None:
    with pytest.raises(gp.ShapeError, match="one dimension"):
        gp.searchsorted(gp.ones((2, 2)), 1)
    with pytest.raises(ValueError, match="'middle'"):
        gp.searchsorted(gp.ones(2), 1, "middle")
    with pytest.raises(gp.ShapeError, match="sorter has shape"):
        gp.searchsorted(gp.ones(2), 1, sorter=gp.zeros(3, "int64"))


# ---- unique ----


@pytest.mark.parametrize("dtype", [name for name in NAMES if not name.startswith("complex")])
@pytest.mark.parametrize("equal_nan", [True, False])
def test_unique(dtype: str, equal_nan: bool) -> None:
    for shape in ((1,), (30, 41)):
        a = sample(shape, dtype)
        found = gp.unique(gp.from_numpy(a), True, True, True, equal_nan=equal_nan)
        expected = np.unique(a, True, True, True, equal_nan=equal_nan)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.to_numpy().reshape(other.shape), other)
        assert found[2].shape == a.shape
        alone = gp.unique(gp.from_numpy(a), equal_nan=equal_nan)
        assert isinstance(alone, gp.GPUArray)
        np.testing.assert_array_equal(alone.to_numpy(), expected[0])


def test_array_api_names() -> None:
    a = sample((7, 30), "float32")
    x = gp.from_numpy(a)
    values, indices, inverse, counts = np.unique(a, True, True, True, equal_nan=False)
    everything = gp.unique_all(x)
    np.testing.assert_array_equal(everything.values.to_numpy(), values)
    np.testing.assert_array_equal(everything.indices.to_numpy(), indices)
    np.testing.assert_array_equal(everything.inverse_indices.to_numpy(), inverse.reshape(a.shape))
    np.testing.assert_array_equal(everything.counts.to_numpy(), counts)
    np.testing.assert_array_equal(gp.unique_values(x).to_numpy(), values)
    np.testing.assert_array_equal(gp.unique_counts(x).counts.to_numpy(), counts)
    np.testing.assert_array_equal(gp.unique_inverse(x).inverse_indices.to_numpy(), inverse.reshape(a.shape))
    empty = gp.unique_all(gp.empty((0, 3)))
    assert [part.shape for part in empty] == [(0,), (0,), (0, 3), (0,)]


def test_unique_complex() -> None:
    a = sample((500,), "complex64")
    finite = a[np.isfinite(a)]
    found = gp.unique_counts(gp.from_numpy(finite))
    values, counts = np.unique(finite, return_counts=True)
    np.testing.assert_array_equal(found.values.to_numpy(), values)
    np.testing.assert_array_equal(found.counts.to_numpy(), counts)


def test_a_sorter_that_points_outside_is_refused() -> None:
    a, v = gp.from_numpy(np.array([3.0, 1.0, 2.0])), gp.from_numpy(np.array([1.5]))
    with pytest.raises(IndexError, match="index 3 is out of range for axis 0 with size 3"):
        gp.searchsorted(a, v, sorter=gp.from_numpy(np.array([1, 2, 3]))).to_numpy()
    assert gp.searchsorted(a, v, sorter=gp.from_numpy(np.array([1, 2, 0]))).to_numpy() == [1]
