"""interp: piecewise linear interpolation, by a kernel of interp.cu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygpukit import kernels
from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.array.factory import asarray
from pygpukit.core.dtypes import complex128, float64
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import copying, elementwise, host, indexing, sorting
from pygpukit.ops.operands import check_array, check_devices, check_operand
from pygpukit.ops.shape import joining

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

__all__ = ["interp"]

SOURCE = kernels.KernelSpec(__file__, "interp.cu")
_CALL = SOURCE.structure("InterpCall")
_BLOCK = 256
_LEFT, _RIGHT = 1, 2  # interp.cu: has_ends


def interp(
    x: Operand, xp: GPUArray, fp: GPUArray, left: Any = None, right: Any = None, period: float | None = None
) -> GPUArray:
    """The line through the points (xp, fp), with xp ascending, at the values x; float64, complex128 of complex fp.

    left, right: below and above all points, by default the first and the last of fp. period: of xp and x, which then
    need no order. NaN stays NaN. The order of xp is not looked at. Asynchronous; raises ShapeError, ValueError (no
    points, a period of 0), DTypeError, DeviceMismatchError.
    """
    xp, fp = check_array(xp, "interp: xp"), check_array(fp, "interp: fp")
    x = asarray(check_operand(x, "interp: x"))
    check_devices("interp", x, xp, fp)
    if xp.ndim != 1 or fp.ndim != 1 or xp.shape != fp.shape:
        raise ShapeError(f"interp: xp and fp have shapes {xp.shape} and {fp.shape}; they must be 1-D and equal")
    if not xp.size:
        raise ValueError("interp: there are no points; give one at least")
    if x.dtype in promotion.COMPLEX or xp.dtype in promotion.COMPLEX:
        raise DTypeError(f"interp: positions are {x.dtype} and {xp.dtype}; convert to real numbers")
    x, xp = elementwise.as_type(x, float64), elementwise.as_type(xp, float64)
    if period is not None:
        if period == 0:
            raise ValueError("interp: period is 0; it must be another number")
        period, left, right = abs(period), None, None
        x, xp = elementwise.remainder(x, period), elementwise.remainder(xp, period)
        order = sorting.argsort(xp)
        xp, fp = indexing.take(xp, order), indexing.take(fp, order)
        xp = joining.concatenate([elementwise.sub(xp[-1:], period), xp, elementwise.add(xp[:1], period)])
        fp = joining.concatenate([fp[-1:], fp, fp[:1]])
    if fp.dtype not in promotion.COMPLEX:
        return _interpolated(x, xp, elementwise.as_type(fp, float64), left, right)
    out = native.empty(x.shape, complex128)
    wide = elementwise.as_type(fp, complex128)
    for name, target in (("real", out.real), ("imag", out.imag)):
        ends = (None if end is None else getattr(complex(end), name) for end in (left, right))
        copying.copy_to(_interpolated(x, xp, copying.contiguous(getattr(wide, name)), *ends), target)
    return out


def _interpolated(x: GPUArray, xp: GPUArray, fp: GPUArray, left: Any, right: Any) -> GPUArray:
    x, xp, fp = (copying.contiguous(each) for each in (x, xp, fp))
    out = native.empty(x.shape, float64)
    if not out.size:
        return out
    if host.computes():

        def compute() -> None:
            import numpy as np

            with np.errstate(all="ignore"):
                host.store(out, np.interp(host.values(x), host.values(xp), host.values(fp), left, right))

        native.host_launch("interp", compute, [x, xp, fp, out])
        return out
    sides = (left is not None) * _LEFT + (right is not None) * _RIGHT
    fields = _CALL.pack(size=x.size, points=xp.size, has_ends=sides, left=float(left or 0), right=float(right or 0))
    grid = (-(-out.size // _BLOCK), 1, 1)
    kernels.launch(SOURCE.of("pk::interpolate"), grid, (_BLOCK, 1, 1), x, xp, fp, out, fields)
    return out


@SOURCE.lists
def instantiations() -> Iterator[tuple[str, ...]]:
    """Name expressions of every kernel that interp() can ask for."""
    yield ("pk::interpolate",)
