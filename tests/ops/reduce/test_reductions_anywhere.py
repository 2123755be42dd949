"""Reductions and softmax at any place of memory and in any shape, in checked mode: a row's bits are the row's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("kernels_on_sim")

Reduce = Callable[..., gp.GPUArray]


def placed(values: np.ndarray[Any, Any], dtype: str, offset: int, margin: int) -> gp.GPUArray:
    """The rows in memory from an element on, with elements between them."""
    rows, length = values.shape
    memory = gp.from_numpy(np.random.default_rng().standard_normal(offset + rows * (length + margin)).astype("float32"))
    view = memory.astype(dtype)[offset:].reshape(rows, length + margin)[:, :length]
    view[:] = gp.from_numpy(values).astype(dtype)
    return view


def bits(x: gp.GPUArray) -> np.ndarray[Any, Any]:
    return (x if x.dtype in ("float32", "int64") else x.astype("float64")).to_numpy()


def close(found: np.ndarray[Any, Any], exact: np.ndarray[Any, Any], dtype: str) -> None:
    np.testing.assert_allclose(found, exact, rtol=2**-7 if dtype == "bfloat16" else 1e-5, atol=0.05)


@pytest.mark.parametrize(("dtype", "name"), [("float32", "sum"), ("bfloat16", "sum"), ("bfloat16", "argmax")])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_rows_bits_are_its_own(dtype: str, name: str, axis: int) -> None:
    op: Reduce = getattr(gp, name)
    for length in (7, 52, 100, 333, 1501):  # short ones, at once and alone, and longer ones
        values = np.random.default_rng().standard_normal((37, length)).astype("float32")
        values = gp.from_numpy(values).astype(dtype).astype("float32").to_numpy()
        own = values if axis else values.T.copy()
        expected = bits(op(gp.from_numpy(own).astype(dtype), axis))
        exact = getattr(values.astype("float64"), name)(1)
        close(expected, exact, dtype) if name == "sum" else np.testing.assert_array_equal(expected, exact)
        for offset in (0, 1, 2, 3, 5):
            x = placed(own, dtype, offset, offset % 3)
            np.testing.assert_array_equal(bits(op(x, axis)), expected)
            np.testing.assert_array_equal(bits(op(x[3:4] if axis else x[:, 3:4], axis)), expected[3:4])
            np.testing.assert_array_equal(bits(op(x.T, 1 - axis)), expected)


def test_parts_of_rows_and_axes_at_any_place() -> None:
    values = np.random.default_rng().standard_normal((3, 17_003)).astype("float32")
    expected = gp.sum(placed(values, "float32", 0, 1), 1).to_numpy()
    close(expected, values.astype("float64").sum(1), "float32")
    for offset, margin in ((1, 1), (2, 0), (3, 5)):
        np.testing.assert_array_equal(gp.sum(placed(values, "float32", offset, margin), 1).to_numpy(), expected)
    x = placed(values[:, :600].reshape(30, 60), "float32", 1, 3)
    close(gp.sum(x).to_numpy(), values[:, :600].astype("float64").sum(), "float32")
    cube = placed(values[:, :1200].reshape(60, 60), "float32", 1, 2)[:, 1:].reshape(4, 15, 59)
    wide = cube.to_numpy().astype("float64")
    for axes in ((0, 2), (0, 1), (1, 2)):
        close(gp.sum(cube, axes).to_numpy(), wide.sum(axes), "float32")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_softmax_of_a_row_is_its_own(dtype: str) -> None:
    for length in (9, 300, 1111, 4200, 41_001):  # four rows at once, two, one, in a larger block, in parts
        values = np.random.default_rng().standard_normal((5, length)).astype("float32")
        wide = gp.from_numpy(values).astype(dtype).astype("float64").to_numpy()
        e = np.exp(wide - wide.max(1, keepdims=True))
        shares = e / e.sum(1, keepdims=True)
        for op, exact in ((gp.softmax, shares), (gp.log_softmax, np.log(shares))):
            expected = bits(op(placed(values, dtype, 0, -length % 16)))
            np.testing.assert_allclose(expected, exact, rtol=2**-7 if dtype == "bfloat16" else 1e-4, atol=1e-6)
            for offset in (0, 1, 3):
                x = placed(values, dtype, offset, offset)
                np.testing.assert_array_equal(bits(op(x)), expected)
                np.testing.assert_array_equal(bits(op(x[2:3])), expected[2:3])
        same = placed(values, dtype, 1, 0)
        expected = bits(gp.softmax(same))
        np.testing.assert_array_equal(bits(gp.softmax(same, out=same)), expected)
    special = np.zeros((4, 20_000), "float32")
    special[0, 19_999], special[1, 3], special[2] = np.nan, np.inf, -np.inf
    found = bits(gp.softmax(gp.from_numpy(special).astype(dtype)))
    assert np.isnan(found[:3]).all() and (found[3] > 0).all()
