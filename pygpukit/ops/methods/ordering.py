"""The methods of arrays that scan, sort and search: the functions of ops/scan, finding.py and sorting.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.ops import copying, scan, sorting
from pygpukit.ops.indexing import finding
from pygpukit.ops.sorting import partial

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.operands import Operand


class Ordering:
    """A base of GPUArray."""

    __slots__ = ()

    def argsort(
        self: Any,
        axis: int | None = -1,
        kind: str | None = None,
        *,
        descending: bool = False,
        stable: bool | None = True,
    ) -> GPUArray:
        """int64 indices that sort the array along axis, stably; see gp.argsort()."""
        return sorting.argsort(self, axis, kind, descending=descending, stable=stable)

    def argpartition(self: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> GPUArray:
        """int64 indices that partition the array along axis; see gp.argpartition()."""
        return partial.argpartition(self, kth, axis, kind)

    def cumprod(self: Any, axis: int | None = None, dtype: DTypeLike | None = None) -> GPUArray:
        """Products of the elements up to each one; see gp.cumprod()."""
        return scan.cumprod(self, axis, dtype)

    def cumsum(self: Any, axis: int | None = None, dtype: DTypeLike | None = None) -> GPUArray:
        """Sums of the elements up to each one; see gp.cumsum()."""
        return scan.cumsum(self, axis, dtype)

    def nonzero(self: Any) -> tuple[GPUArray, ...]:
        """Coordinates of the elements that are not zero; see gp.nonzero(). Waits for their count."""
        return finding.nonzero(self)

    def partition(self: Any, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
        """Partition the array itself along axis, as NumPy's method; gp.partition() gives a partitioned copy."""
        copying.copy_to(partial.partition(self, kth, axis, kind), self)

    def searchsorted(self: Any, v: Operand, side: str = "left", sorter: GPUArray | None = None) -> GPUArray:
        """Positions in this sorted array at which v keeps it sorted; see gp.searchsorted()."""
        return sorting.searchsorted(self, v, side, sorter)

    def sort(
        self: Any, axis: int = -1, kind: str | None = None, *, descending: bool = False, stable: bool | None = True
    ) -> None:
        """Sort the array itself along axis, as NumPy's method; gp.sort() gives a sorted copy."""
        copying.copy_to(sorting.sort(self, axis, kind, descending=descending, stable=stable), self)

    def topk(self: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[GPUArray, GPUArray]:
        """(values, indices) of the k largest or smallest elements along axis; see gp.topk()."""
        return sorting.topk(self, k, axis, largest, sorted)
