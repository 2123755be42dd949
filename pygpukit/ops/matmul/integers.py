"""Products of int8 matrices with int32 sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.dtypes import int8, int32
from pygpukit.core.errors import DTypeError
from pygpukit.ops import copying
from pygpukit.ops.matmul.choose import choose
from pygpukit.ops.matmul.layout.batch import stacked, with_matrix_axes
from pygpukit.ops.matmul.problem import Problem
from pygpukit.ops.operands import check_array, check_devices, check_out

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["matmul_int8"]


def matmul_int8(a: GPUArray, b: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """a @ b of int8 operands, in int32: shapes as matmul(), which gives int8 that wraps, as NumPy does.

    Exact for a k of up to 131071; beyond, a sum that leaves int32 wraps. out: of int32, or a type that takes it. On
    tensor cores where matmul_plan(a, b, dtype="int32") says "tile"; asynchronous, the same bits on every run and on
    every device. Raises ShapeError, DTypeError, DeviceMismatchError.
    """
    what = "matmul_int8"
    if check_array(a, what).dtype != int8 or check_array(b, what).dtype != int8:
        raise DTypeError(f"{what}: operands are {a.dtype} and {b.dtype}; both must be int8")
    check_devices(what, a, b)
    left, right, shape = stacked(a, b, what)
    checked_out = None if out is None else check_out(out, shape, int32, what)
    target = checked_out if checked_out is not None and checked_out.dtype == int32 else native.empty(shape, int32)
    if target.size:  # an int32 array shares no bytes with int8 operands unless it is a view of theirs
        aside = native.empty(shape, int32) if target.block in (a.block, b.block) else target
        full = with_matrix_axes(aside, a.ndim == 1, b.ndim == 1)
        choose(Problem.of("int8", left, right, int32)).run(left, right, full)
        if aside is not target:
            copying.copy_to(aside, target)
    if checked_out is None or checked_out is target:
        return target
    copying.copy_to(target, checked_out)
    return checked_out
