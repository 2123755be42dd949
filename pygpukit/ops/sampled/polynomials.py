"""polyval and vander, as NumPy's functions. Asynchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.array.factory import asarray, zeros_like
from pygpukit.core.dtypes import int64
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, elementwise, scan, shape
from pygpukit.ops.operands import check_array, check_devices, check_operand

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["polyval", "vander"]


def polyval(p: Any, x: Any) -> GPUArray:
    """p[0] x^(n-1) + ... + p[n-1] at each element of x, by Horner's scheme: two launches a coefficient.

    p: coefficients, a list or a 1-D array; x: an array or a number. Types promote. Raises ShapeError, DTypeError.
    """
    p = asarray(p) if isinstance(p, (list, tuple)) else check_array(p, "polyval: p")
    if p.ndim != 1:
        raise ShapeError(f"polyval: coefficients have shape {p.shape}; they must be 1-D")
    x = asarray(check_operand(x, "polyval: x"))
    result = zeros_like(x)
    for k in range(p.size):
        result = elementwise.add(elementwise.mul(result, x), p[k])
    return result


def vander(x: GPUArray, N: int | None = None, increasing: bool = False) -> GPUArray:
    """Powers of the elements of a 1-D array as rows: from N - 1 down to 0, or up from 0. N: by default as many as rows.

    Types promote with int64, as NumPy has it: float32 gives float64. Raises ShapeError, ValueError, DTypeError.
    """
    x = check_array(x, "vander")
    check_devices("vander", x)
    if x.ndim != 1:
        raise ShapeError(f"vander: shape {x.shape} must be 1-D")
    count = x.size if N is None else N
    if count < 0:
        raise ValueError(f"vander: N is {N}; it must not be negative")
    x = elementwise.as_type(x, promotion.promote(x.dtype, int64))
    matrix = native.empty((x.size, count), x.dtype)
    if matrix.size:
        rows = matrix if increasing else shape.flip(matrix, 1)
        copying.fill(rows[:, :1], 1)
        if count > 1:
            copying.copy_to(scan.cumprod(shape.broadcast_to(x[:, None], (x.size, count - 1)), 1), rows[:, 1:])
    return matrix
