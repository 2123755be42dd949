"""apply_along_axis: a function of 1-D arrays at every row of an array."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

from pygpukit.array import layout
from pygpukit.array.factory import asarray
from pygpukit.core.errors import ShapeError
from pygpukit.ops import shape
from pygpukit.ops.fusion import Fused
from pygpukit.ops.operands import check_array, check_devices
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["apply_along_axis"]


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: GPUArray, *args: Any, **kwargs: Any) -> GPUArray:
    """func1d(row, *args, **kwargs) of every 1-D row along axis; the axes of its results take the axis' place.

    A fused function (@gp.fuse) with numbers as further arguments runs on the whole array in one launch. Any other is
    called for each row, with a view of it: its launches times the number of rows. Raises ShapeError, also where there
    is no row, DTypeError.
    """
    arr = check_array(arr, "apply_along_axis: arr")
    check_devices("apply_along_axis", arr)
    axis = layout.normalize_axis(axis, arr.ndim, "apply_along_axis")
    rows = shape.moveaxis(arr, axis, -1)
    outer = rows.shape[:-1]
    if 0 in outer:
        raise ShapeError(f"apply_along_axis: shape {arr.shape} has no row along axis {axis}; give one at least")
    if isinstance(func1d, Fused) and not kwargs and not any(getattr(arg, "ndim", 0) for arg in args):
        return shape.moveaxis(func1d(rows, *args), -1, axis)
    lines = [asarray(func1d(rows[place], *args, **kwargs)) for place in product(*map(range, outer))]
    together = joining.stack(lines)
    together = shape.reshape(together, (*outer, *lines[0].shape))
    results = range(len(outer), together.ndim)
    return shape.moveaxis(together, tuple(results), tuple(range(axis, axis + len(results))))
