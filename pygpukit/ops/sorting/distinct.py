"""The different values of an array, sorted: unique(), and the four functions of the array API standard.

Each waits once, for the number of values. Deterministic; equal elements keep their order, so indices are of the first
occurrence.
"""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import factory, layout, promotion
from pygpukit.core.dtypes import bool_, int64
from pygpukit.ops import elementwise, host, indexing, reduce, scan, shape, sorting
from pygpukit.ops.elementwise import logic
from pygpukit.ops.indexing import masks
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

_HEADS = sorting.SEARCH.structure("HeadsLayout")
_BLOCK = 256


class UniqueAll(NamedTuple):
    """unique_all(): values, where each occurs first, which of them each element is, how often each occurs."""

    values: GPUArray
    indices: GPUArray
    inverse_indices: GPUArray
    counts: GPUArray


class UniqueCounts(NamedTuple):
    """unique_counts(): values and how often each occurs."""

    values: GPUArray
    counts: GPUArray


class UniqueInverse(NamedTuple):
    """unique_inverse(): values and which of them each element is."""

    values: GPUArray
    inverse_indices: GPUArray


def unique(
    a: GPUArray,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> GPUArray | tuple[GPUArray, ...]:
    """The different elements in ascending order, 1-D; with flags a tuple of them and what the flags name, int64.

    return_index: of the first occurrence in the flattened array. return_inverse: positions in the result, in a's shape.
    axis: the different slices along it, in the order of their elements, instead; each column of them is sorted once.
    equal_nan: NaNs count as one value. Raises DTypeError (storage types), AxisError and DeviceMismatchError.
    """
    sorted_values: _Unique | _UniqueSlices
    if axis is None:
        sorted_values = _Unique(a, "unique", return_index or return_inverse, equal_nan)
    else:
        sorted_values = _UniqueSlices(a, axis, equal_nan)
    results = [sorted_values.values()]
    if return_index:
        results.append(sorted_values.indices())
    if return_inverse:
        results.append(sorted_values.inverse())
    if return_counts:
        results.append(sorted_values.counts())
    return results[0] if len(results) == 1 else tuple(results)


def unique_all(x: GPUArray, /) -> UniqueAll:
    """unique() with everything, of the array API: every NaN is a value of its own. Errors as unique()."""
    distinct = _Unique(x, "unique_all", True, False)
    return UniqueAll(distinct.values(), distinct.indices(), distinct.inverse(), distinct.counts())


def unique_counts(x: GPUArray, /) -> UniqueCounts:
    """Values and counts, of the array API. As unique_all()."""
    distinct = _Unique(x, "unique_counts", False, False)
    return UniqueCounts(distinct.values(), distinct.counts())


def unique_inverse(x: GPUArray, /) -> UniqueInverse:
    """Values and inverse indices, of the array API. As unique_all()."""
    distinct = _Unique(x, "unique_inverse", True, False)
    return UniqueInverse(distinct.values(), distinct.inverse())


def unique_values(x: GPUArray, /) -> GPUArray:
    """Values, of the array API. As unique_all()."""
    return _Unique(x, "unique_values", False, False).values()


class _Unique:
    """The flattened array sorted, and which elements are the first of their value."""

    def __init__(self, a: GPUArray, what: str, ordered: bool, equal_nan: bool) -> None:
        a = sorting.check_ordered(a, what)
        self.shape = a.shape
        flat = a.reshape(-1)
        self.order = sorting.argsort(flat) if ordered else None
        self.sorted = sorting.sort(flat) if self.order is None else indexing.take(flat, self.order)
        self.heads = _heads(self.sorted, equal_nan)
        self.starts = masks.flatnonzero(self.heads)

    def values(self) -> GPUArray:
        return indexing.take(self.sorted, self.starts)

    def indices(self) -> GPUArray:
        assert self.order is not None
        return indexing.take(self.order, self.starts)

    def inverse(self) -> GPUArray:
        assert self.order is not None
        return _inverted(self.order, scan.cumsum(self.heads)).reshape(self.shape)

    def counts(self) -> GPUArray:
        return _counts(self.starts, self.heads.size)


class _UniqueSlices:
    """The slices along an axis as rows, in lexical order, and which of them are the first of their kind."""

    def __init__(self, a: GPUArray, axis: int, equal_nan: bool) -> None:
        a = sorting.check_ordered(a, "unique")
        self.axis = layout.normalize_axis(axis, a.ndim, "unique")
        rows = shape.moveaxis(a, self.axis, 0)
        self.rest = rows.shape[1:]
        flat = shape.reshape(rows, (rows.shape[0], prod(self.rest)))
        order = factory.arange(flat.shape[0])
        for column in range(flat.shape[1] - 1, -1, -1):  # stable sorts, the first column last
            order = indexing.take(order, sorting.argsort(indexing.take(flat[:, column], order)))
        self.order, self.sorted = order, indexing.take(flat, order, 0)
        before, behind = self.sorted[:-1], self.sorted[1:]
        differ = elementwise.binary(elementwise.operations.NE, before, behind, None)
        if equal_nan and promotion.is_inexact(a.dtype):
            both = logic.logical_and(logic.isnan(before), logic.isnan(behind))
            differ = logic.logical_and(differ, logic.logical_not(both))
        first = factory.ones(min(flat.shape[0], 1), bool_)
        self.heads = joining.concatenate([first, reduce.any(differ, 1)]) if flat.shape[0] else first
        self.starts = masks.flatnonzero(self.heads)

    def values(self) -> GPUArray:
        rows = indexing.take(self.sorted, self.starts, 0)
        return shape.moveaxis(shape.reshape(rows, (rows.shape[0], *self.rest)), 0, self.axis)

    def indices(self) -> GPUArray:
        return indexing.take(self.order, self.starts)

    def inverse(self) -> GPUArray:
        return _inverted(self.order, scan.cumsum(self.heads))

    def counts(self) -> GPUArray:
        return _counts(self.starts, self.heads.size)


def _counts(starts: GPUArray, size: int) -> GPUArray:
    """The distances of the starts from each other, and of the last from the size."""
    counts = native.empty(starts.shape, int64)
    if counts.size:
        elementwise.sub(starts[1:], starts[:-1], out=counts[:-1])
        elementwise.sub(size, starts[-1:], out=counts[-1:])
    return counts


def _heads(array: GPUArray, equal_nan: bool) -> GPUArray:
    heads = native.empty(array.shape, bool_)
    if not heads.size:
        return heads
    if host.computes():

        def compute() -> None:
            x, head = host.values(array), host.memory(heads)
            head[:1] = True
            head[1:] = x[1:] != x[:-1]
            if equal_nan:
                head[1:] &= (x[1:] == x[1:]) | (x[:-1] == x[:-1])

        native.host_launch("unique", compute, [array, heads])
    else:
        fields = _HEADS.pack(length=array.size, equal_nan=equal_nan)
        _launch(f"pk::mark_heads<{sorting.ctype(array.dtype)}>", array, heads, fields)
    return heads


def _inverted(order: GPUArray, ranks: GPUArray) -> GPUArray:
    """out[order[i]] = ranks[i] - 1."""
    out = native.empty(order.shape, int64)
    if not out.size:
        return out
    if host.computes():

        def compute() -> None:
            host.memory(out)[host.memory(order)] = host.memory(ranks) - 1

        native.host_launch("unique", compute, [order, ranks, out])
    else:
        _launch("pk::invert_order", order, ranks, out, struct.pack("<q", out.size))
    return out


def _launch(kernel: str, array: GPUArray, *args: GPUArray | bytes) -> None:
    """Launch a kernel of search.cu with a thread for each element of array, its first argument."""
    kernels.launch(sorting.SEARCH.of(kernel), (-(-array.size // _BLOCK), 1, 1), (_BLOCK, 1, 1), array, *args)
