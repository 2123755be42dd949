"""diff: differences of neighbours along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array import layout
from pygpukit.core.dtypes import bool_
from pygpukit.core.errors import ShapeError
from pygpukit.ops import elementwise, shape
from pygpukit.ops.elementwise import logic
from pygpukit.ops.operands import check_array, check_operand, is_array
from pygpukit.ops.prepared import prepared
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

__all__ = ["diff"]


@prepared
def diff(
    a: GPUArray, n: int = 1, axis: int = -1, prepend: Operand | None = None, append: Operand | None = None
) -> GPUArray:
    """The n-th differences of neighbours along axis, of a with prepend before it and append after it; of bool, where
    neighbours differ.

    prepend, append: arrays, or numbers, which stand for one entry. Unsigned integers wrap. Raises ValueError for a
    negative n, ShapeError for an axis that is not there and parts that do not fit.
    """
    if n < 0:
        raise ValueError(f"diff: n is {n} and must not be negative")
    a = check_array(a, "diff")
    if a.ndim == 0:
        raise ShapeError("diff: a 0-d array has no neighbours; it must have one axis at least")
    axis = layout.normalize_axis(axis, a.ndim, "diff")
    if n == 0:
        return a
    parts = [_part(part, a, axis) for part in (prepend, a, append) if part is not None]
    whole = joining.concatenate(parts, axis) if len(parts) > 1 else a
    subtract: Any = logic.not_equal if whole.dtype == bool_ else elementwise.sub
    later, earlier = ((*(slice(None),) * axis, part) for part in (slice(1, None), slice(-1)))
    for _ in range(n):
        whole = subtract(whole[later], whole[earlier])
    return whole


def _part(part: Any, a: GPUArray, axis: int) -> GPUArray:
    part = check_operand(part, "diff")
    if not is_array(part):
        from pygpukit.array.factory import asarray

        part = asarray(part)
    extents = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    return shape.broadcast_to(part, extents) if part.ndim == 0 else part
