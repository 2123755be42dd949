"""Moving elements between arrays: copies that broadcast, convert types and cross any strides; filling with a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout, scalars
from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import ShapeError
from pygpukit.ops import operands
from pygpukit.ops.copying import transposing
from pygpukit.ops.elementwise import pointwise
from pygpukit.ops.prepared import prepared

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

LOW_LEVEL = ["copy_to"]


@prepared
def copy_to(src: GPUArray, dst: GPUArray) -> None:
    """dst[...] = src, on the device, in stream order.

    src broadcasts to dst's shape and is converted to dst's type; overlapping memory is handled as if src were copied
    first. Raises ShapeError (also for a dst whose elements share memory) and DeviceMismatchError.
    """
    src, dst = (operands.check_array(src, "copy_to: src"), operands.check_array(dst, "copy_to: dst"))
    operands.check_devices("copy_to", src, dst)
    operands.check_writable(dst, "copy_to")
    src = without_leading_ones(src, dst.ndim)
    if layout.broadcast_shapes(src.shape, dst.shape, "copy_to") != dst.shape:
        raise ShapeError(f"copy_to: shape {src.shape} does not broadcast to the destination's shape {dst.shape}")
    if operands.same_view(src, dst):
        return
    if operands.overlaps(src, dst):
        src = clone(src)
    if src.dtype is not dst.dtype:
        if transposing.is_transposed(src):  # through shared memory, which moves elements of one type
            src = clone(src)
        pointwise.unary(pointwise.COPY, src, dst)
    elif pointwise.dense(src, dst):
        native.copy(dst, src)
    else:
        transposing.copy(src, dst)


@prepared
def clone(array: GPUArray) -> GPUArray:
    """A new C-contiguous array with the same elements."""
    out = native.empty(array.shape, array.dtype)
    copy_to(array, out)
    return out


def contiguous(array: GPUArray) -> GPUArray:
    """The array itself when it is C-contiguous, else a C-contiguous copy."""
    return array if array.is_contiguous() else clone(array)


@prepared
def astype(array: GPUArray, dtype: DataType) -> GPUArray:
    """A new C-contiguous array with the elements converted to dtype.

    Conversions are NumPy's: integers wrap, floats to integers truncate (undefined out of range), narrower floats round
    to nearest even, complex to real drops the imaginary part. Those of storage types are ops/storage.py's.
    """
    out = native.empty(array.shape, dtype)
    copy_to(array, out)
    return out


@prepared
def fill(array: GPUArray, value: Any) -> None:
    """Every element = value, a Python number. Raises OverflowError and DTypeError when it cannot be stored."""
    operands.check_writable(array, "fill")
    pattern = scalars.encode(value, array.dtype)
    if array.is_contiguous():
        native.fill(array, pattern)
    else:
        copy_to(pointwise.scalar_array(value, array.dtype), array)


def without_leading_ones(array: GPUArray, ndim: int) -> GPUArray:
    """A view without the axes of one element in front that are more than ndim; assignment ignores them, as NumPy's."""
    extra = 0
    while array.ndim - extra > ndim and array.shape[extra] == 1:
        extra += 1
    return native.view(array, array.shape[extra:], array.strides[extra:], array.offset) if extra else array
