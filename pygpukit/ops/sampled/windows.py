"""convolve and correlate of 1-D arrays, as NumPy's functions: products of a matrix of overlapping windows, a view.

The order of additions is matmul()'s, in float32 for float16 and bfloat16; integers wrap. Asynchronous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.errors import ShapeError
from pygpukit.ops import copying, elementwise, shape
from pygpukit.ops.indexing import padding
from pygpukit.ops.matmul.gemm import matmul
from pygpukit.ops.operands import check_array, check_devices

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = ["convolve", "correlate"]


def convolve(a: GPUArray, v: GPUArray, mode: str = "full") -> GPUArray:
    """sum over k of a[k] v[n - k]. mode: "full" (every overlap), "same" (as long as the longer, its middle), "valid".

    Types promote. Raises ShapeError (another number of axes than 1, nothing in an array), ValueError (mode),
    DTypeError, DeviceMismatchError.
    """
    a, v = _checked(a, v, mode, "convolve")
    if v.size > a.size:
        a, v = v, a
    return _sliding(a, shape.flip(v), mode)


def correlate(a: GPUArray, v: GPUArray, mode: str = "valid") -> GPUArray:
    """sum over n of a[n + k] conj(v[n]). Modes and errors as convolve()."""
    a, v = _checked(a, v, mode, "correlate")
    v = elementwise.conj(v) if v.dtype in promotion.COMPLEX else v
    if v.size > a.size:
        return copying.contiguous(shape.flip(_sliding(v, a, mode)))
    return _sliding(a, v, mode)


def _checked(a: GPUArray, v: GPUArray, mode: str, what: str) -> tuple[GPUArray, GPUArray]:
    a, v = check_array(a, what), check_array(v, what)
    check_devices(what, a, v)
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{what}: mode {mode!r} is unknown; use 'full', 'same' or 'valid'")
    a, v = shape.atleast_1d(a), shape.atleast_1d(v)
    if a.ndim != 1 or v.ndim != 1 or not a.size or not v.size:
        raise ShapeError(f"{what}: shapes {a.shape} and {v.shape}: both must be 1-D and not empty; use reshape first")
    dtype = promotion.promote(a.dtype, v.dtype)
    return elementwise.as_type(a, dtype), elementwise.as_type(v, dtype)


def _sliding(a: GPUArray, v: GPUArray, mode: str) -> GPUArray:
    """Products of v with what of a lies under it at each place; v is not longer."""
    width = v.size
    before = {"full": width - 1, "same": width // 2, "valid": 0}[mode]
    behind = {"full": width - 1, "same": (width - 1) // 2, "valid": 0}[mode]
    wide = padding.pad(a, (before, behind)) if before or behind else copying.contiguous(a)
    step = wide.itemsize
    windows = native.view(wide, (wide.size - width + 1, width), (step, step), wide.offset)
    return matmul(windows, v)
