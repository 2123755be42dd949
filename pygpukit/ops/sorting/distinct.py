"""The different values of an array, sorted: unique(), and the four functions of the array API standard.

Each waits once, for the number of values. Deterministic; equal elements keep their order, so indices are of the first
occurrence.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.core.dtypes import bool_, int64
from pygpukit.ops import elementwise, host, indexing, scan, sorting
from pygpukit.ops.indexing import masks

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
    *,
    equal_nan: bool = True,
) -> GPUArray | tuple[GPUArray, ...]:
    """The different elements in ascending order, 1-D; with flags a tuple of them and what the flags name, int64.

    return_index: of the first occurrence in the flattened array. return_inverse: positions in the result, in a's shape.
    equal_nan: NaNs count as one value. Raises DTypeError (storage types) and DeviceMismatchError.
    """
    found = _Unique(a, "unique", return_index or return_inverse, equal_nan)
    results = [found.values()]
    if return_index:
        results.append(found.indices())
    if return_inverse:
        results.append(found.inverse())
    if return_counts:
        results.append(found.counts())
    return results[0] if len(results) == 1 else tuple(results)


def unique_all(x: GPUArray, /) -> UniqueAll:
    """unique() with everything, of the array API: every NaN is a value of its own. Errors as unique()."""
    found = _Unique(x, "unique_all", True, False)
    return UniqueAll(found.values(), found.indices(), found.inverse(), found.counts())


def unique_counts(x: GPUArray, /) -> UniqueCounts:
    """Values and counts, of the array API. As unique_all()."""
    found = _Unique(x, "unique_counts", False, False)
    return UniqueCounts(found.values(), found.counts())


def unique_inverse(x: GPUArray, /) -> UniqueInverse:
    """Values and inverse indices, of the array API. As unique_all()."""
    found = _Unique(x, "unique_inverse", True, False)
    return UniqueInverse(found.values(), found.inverse())


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
        starts = self.starts
        counts = native.empty(starts.shape, int64)
        if counts.size:
            elementwise.sub(starts[1:], starts[:-1], out=counts[:-1])
            elementwise.sub(self.heads.size, starts[-1:], out=counts[-1:])
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
