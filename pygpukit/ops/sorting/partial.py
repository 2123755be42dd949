"""Partitions, and the order by several keys, as NumPy's functions of these names: by stable sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygpukit.array import layout
from pygpukit.core.errors import ShapeError
from pygpukit.ops import indexing, sorting
from pygpukit.ops.operands import check_array, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["argpartition", "lexsort", "partition"]


def partition(a: GPUArray, kth: int | Sequence[int], axis: int | None = -1, kind: str = "introselect") -> GPUArray:
    """A copy with the kth elements where sorting puts them, smaller ones before and larger ones behind: sorted.

    Raises ValueError for a kth out of range or another kind than "introselect"; else as sort().
    """
    _check_partition(a, kth, axis, kind, "partition")
    return sorting.sort(a, axis)


def argpartition(a: GPUArray, kth: int | Sequence[int], axis: int | None = -1, kind: str = "introselect") -> GPUArray:
    """The int64 indices of partition(). Arguments and errors as it."""
    _check_partition(a, kth, axis, kind, "argpartition")
    return sorting.argsort(a, axis)


def lexsort(keys: Sequence[GPUArray] | GPUArray, axis: int = -1) -> GPUArray:
    """int64 indices that sort by the last key, equal ones by the key before, and so on; equal elements stay in order.

    keys: arrays of one shape, or the rows of an array. Raises TypeError for none, ShapeError for different shapes; else
    as sort().
    """
    rows = [keys[position] for position in range(len(keys))] if is_array(keys) else list(keys)
    if not rows:
        raise TypeError("lexsort: give at least one key")
    shapes = [check_array(key, "lexsort").shape for key in rows]
    if len(set(shapes)) > 1:
        raise ShapeError(f"lexsort: the keys have different shapes: {', '.join(map(str, shapes))}")
    order = sorting.argsort(rows[0], axis)
    for key in rows[1:]:
        among = sorting.argsort(indexing.take_along_axis(key, order, axis), axis)
        order = indexing.take_along_axis(order, among, axis)
    return order


def _check_partition(a: Any, kth: Any, axis: int | None, kind: str, what: str) -> None:
    a = check_array(a, what)
    if kind != "introselect":
        raise ValueError(f"{what}: kind is {kind!r}; it must be 'introselect'")
    size = a.size if axis is None else a.shape[layout.normalize_axis(axis, a.ndim, what)]
    for place in layout.integers(kth, f"{what}: kth"):
        if not -size <= place < size:
            raise ValueError(f"{what}: kth is {place}, out of range for {size} elements")
