"""Shape and stride arithmetic against NumPy, on random layouts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from pygpukit.array import layout
from pygpukit.array.indexing import index_view
from pygpukit.core.errors import ShapeError

extents = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """A stepped, reversed, permuted view."""
    shape = draw(extents)
    steps = [draw(st.sampled_from([1, 1, 2, -1, -3])) for _ in shape]
    base = np.arange(int(np.prod([n * abs(s) for n, s in zip(shape, steps, strict=True)]))).reshape(
        [n * abs(s) for n, s in zip(shape, steps, strict=True)]
    )
    view = np.asarray(base[tuple(slice(None, None, step) for step in steps)])
    return view.transpose(draw(st.permutations(range(len(shape)))))


@cache
def divisors(size: int) -> list[int]:
    return [n for n in range(2, size + 1) if size % n == 0]


@st.composite
def factored(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """A shape that holds size elements."""
    if size == 0:
        return (*draw(extents), 0)
    shape: list[int] = []
    while size > 1:
        shape.append(draw(st.sampled_from(divisors(size))))
        size //= shape[-1]
    return tuple(draw(st.permutations([*shape, *draw(st.sampled_from([[], [1], [1, 1]]))])))


@given(st.data())
def test_reshape_is_a_view_exactly_when_numpys_is(data: st.DataObject) -> None:
    a = data.draw(arrays())
    target = data.draw(factored(a.size))
    strides = layout.reshape_strides(a.shape, a.strides, target, a.itemsize)
    if not a.size:
        assert strides is not None
        return
    assert (strides is not None) == np.shares_memory(a, a.reshape(target))
    if strides is not None:
        np.testing.assert_array_equal(as_strided(a, target, strides), a.reshape(target))


@given(arrays())
def test_collapsed_axes_walk_the_same_elements(a: np.ndarray[Any, Any]) -> None:
    other = layout.contiguous_strides(a.shape, 1)
    shape, (strides, dense) = layout.collapse(a.shape, [a.strides, other])
    assert len(shape) <= a.ndim
    assert 1 not in shape
    if a.size:
        np.testing.assert_array_equal(as_strided(a, shape, strides).ravel(), a.ravel())
        assert dense == layout.contiguous_strides(shape, 1)


@given(extents, extents)
def test_broadcast_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ShapeError):
            layout.broadcast_shapes(a, b, "test")
        return
    assert layout.broadcast_shapes(a, b, "test") == expected
    x = np.zeros(a)
    strides = layout.broadcast_strides(a, x.strides, expected)
    numpys = np.broadcast_to(x, expected).strides
    assert [s for n, s in zip(expected, strides, strict=True) if n > 1] == [
        s for n, s in zip(expected, numpys, strict=True) if n > 1
    ]


indices = st.one_of(
    st.integers(-6, 5),
    st.builds(slice, *[st.one_of(st.none(), st.integers(-7, 7))] * 2, st.sampled_from([None, 1, 2, -1, -2])),
    st.none(),
    st.just(...),
)


@given(arrays(), st.lists(indices, max_size=5).map(tuple))
def test_indexing_is_numpys(a: np.ndarray[Any, Any], key: tuple[Any, ...]) -> None:
    try:
        expected = np.asarray(a[key])
    except IndexError:
        with pytest.raises(IndexError):
            index_view(key, a.shape, a.strides, 0)
        return
    shape, strides, offset = index_view(key, a.shape, a.strides, 0)
    assert shape == expected.shape
    if expected.size:
        whole = a.base if a.base is not None else a
        while whole.base is not None:
            whole = whole.base
        start = a.__array_interface__["data"][0] - whole.__array_interface__["data"][0] + offset
        np.testing.assert_array_equal(np.ndarray(shape, a.dtype, whole.tobytes(), start, strides), expected)


@given(arrays())
def test_byte_span_is_tight(a: np.ndarray[Any, Any]) -> None:
    if not a.size:
        return
    low, high = layout.byte_span(a.shape, a.strides, 0, a.itemsize)
    begin, end = np.lib.array_utils.byte_bounds(a)
    at = a.__array_interface__["data"][0]
    assert (low, high) == (begin - at, end - at)


@given(arrays(), arrays())
def test_stacks_of_matrices_multiply_where_numpys_operands_do(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> None:
    try:
        expected = np.matmul(a, b)
    except ValueError:
        with pytest.raises(ShapeError, match=r"^product.*: shapes"):
            layout.matrix_stacks((a.shape, a.strides), (b.shape, b.strides), "product")
        return
    left, right, shape = layout.matrix_stacks((a.shape, a.strides), (b.shape, b.strides), "product")
    assert shape == expected.shape and left[0][:-2] == right[0][:-2]
    np.testing.assert_array_equal((as_strided(a, *left) @ as_strided(b, *right)).reshape(shape), expected)
