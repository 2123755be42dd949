"""Moving elements between arrays: copies that broadcast, convert types and cross any strides; filling with a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core import layout, scalars
from pygpukit.core.dtypes import STORAGE_ONLY, DataType
from pygpukit.core.errors import DTypeError, ShapeError
from pygpukit.ops import operands, pointwise

if TYPE_CHECKING:
    from pygpukit.core.array import GPUArray


def copy_to(src: GPUArray, dst: GPUArray) -> None:
    """dst[...] = src, on the device, in stream order.

    src broadcasts to dst's shape and is converted to dst's type; overlapping memory is handled as if src were copied
    first. Raises ShapeError, DTypeError (storage-only types convert to nothing) and DeviceMismatchError.
    """
    src, dst = (operands.check_array(src, "copy_to: src"), operands.check_array(dst, "copy_to: dst"))
    operands.check_devices("copy_to", src, dst)
    if layout.broadcast_shapes(src.shape, dst.shape, "copy_to") != dst.shape:
        raise ShapeError(f"copy_to: shape {src.shape} does not broadcast to the destination's shape {dst.shape}")
    if src.dtype != dst.dtype:
        for dtype in (src.dtype, dst.dtype):
            if dtype in STORAGE_ONLY:
                raise DTypeError(
                    f"no conversion from {src.dtype} to {dst.dtype}: {dtype} is a storage type; "
                    "use .view('uint8') for its bits"
                )
    if operands.same_view(src, dst):
        return
    if operands.overlaps(src, dst):
        src = clone(src)
    if src.dtype is not dst.dtype:  # conversion walks dense arrays only: strides are crossed before or after it
        src = contiguous(src)
        if not pointwise.dense(src, dst):
            src = astype(src, dst.dtype)
    if src.dtype is dst.dtype and pointwise.dense(src, dst):
        native.copy(dst, src)
    else:
        pointwise.unary(pointwise.COPY, src, dst)


def clone(array: GPUArray) -> GPUArray:
    """A new C-contiguous array with the same elements."""
    out = native.empty(array.shape, array.dtype)
    copy_to(array, out)
    return out


def contiguous(array: GPUArray) -> GPUArray:
    """The array itself when it is C-contiguous, else a C-contiguous copy."""
    return array if array.is_contiguous() else clone(array)


def astype(array: GPUArray, dtype: DataType) -> GPUArray:
    """A new C-contiguous array with the elements converted to dtype.

    Conversions are NumPy's: integers wrap, floats to integers truncate (undefined out of range), narrower floats round
    to nearest even, complex to real drops the imaginary part.
    """
    out = native.empty(array.shape, dtype)
    copy_to(array, out)
    return out


def fill(array: GPUArray, value: Any) -> None:
    """Every element = value, a Python number. Raises OverflowError and DTypeError when it cannot be stored."""
    pattern = scalars.encode(value, array.dtype)
    if array.is_contiguous():
        native.fill(array, pattern)
    else:
        copy_to(pointwise.scalar_array(value, array.dtype), array)
