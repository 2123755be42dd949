"""Making arrays: by shape, by value, from host data. All on the current device, in the order of the current stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit._core import native
from pygpukit.array import promotion, scalars
from pygpukit.array.dlpack import from_dlpack as from_dlpack
from pygpukit.core.device import current_device
from pygpukit.core.dtypes import DataType, as_dtype, float64, int64
from pygpukit.core.errors import DTypeError

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

    ShapeLike: TypeAlias = "int | Sequence[int]"

# The compiled function itself: the shortest way from Python to the pool.
empty = native.empty


def full(shape: ShapeLike, fill_value: promotion.Scalar, dtype: DTypeLike | None = None) -> GPUArray:
    """A new array with every element set to fill_value.

    dtype: the number's own kind (bool, int64, float64, complex128) when left out. Raises ShapeError, DTypeError,
    OverflowError (an integer that does not fit), OutOfMemoryError.
    """
    return _filled(shape, fill_value, as_dtype(type(fill_value) if dtype is None else dtype))


def zeros(shape: ShapeLike, dtype: DTypeLike = "float32") -> GPUArray:
    """A new array of zeros (of zero bits for types without arithmetic). Errors as full()."""
    array = native.empty(shape, dtype)
    if array.size:
        native.fill(array, bytes(array.itemsize))
    return array


def ones(shape: ShapeLike, dtype: DTypeLike = "float32") -> GPUArray:
    """A new array of ones. Errors as full()."""
    return _filled(shape, 1, as_dtype(dtype))


def empty_like(array: GPUArray, dtype: DTypeLike | None = None) -> GPUArray:
    """A new array with the shape, and unless dtype is given the type, of another; its contents are undefined."""
    return native.empty(array.shape, array.dtype if dtype is None else dtype)


def zeros_like(array: GPUArray, dtype: DTypeLike | None = None) -> GPUArray:
    """zeros() with the shape, and unless dtype is given the type, of another array."""
    return zeros(array.shape, array.dtype if dtype is None else dtype)


def ones_like(array: GPUArray, dtype: DTypeLike | None = None) -> GPUArray:
    """ones() with the shape, and unless dtype is given the type, of another array."""
    return ones(array.shape, array.dtype if dtype is None else dtype)


def full_like(array: GPUArray, fill_value: promotion.Scalar, dtype: DTypeLike | None = None) -> GPUArray:
    """full() with the shape, and unless dtype is given the type, of another array."""
    return full(array.shape, fill_value, array.dtype if dtype is None else dtype)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: DTypeLike | None = None) -> GPUArray:
    """start, start + step, ... up to but without stop; arange(n) counts from 0.

    dtype: int64 when all are integers, else float64, as NumPy. The values are made on the host and copied once.
    """
    import numpy as np

    if stop is None:
        start, stop = 0, start
    wanted = as_dtype(dtype) if dtype is not None else None
    if wanted is None:
        wanted = int64 if all(isinstance(x, int) for x in (start, stop, step)) else float64
    values = from_numpy(np.arange(start, stop, step))
    return values if values.dtype == wanted else values.astype(wanted)


def from_numpy(array: np.ndarray[Any, Any]) -> GPUArray:
    """A C-contiguous copy of a NumPy array (or scalar) on the device, of the same type; `array` may change afterwards.

    Arrays of `ml_dtypes` keep their type; NumPy's uint16 stays uint16 (use .view("bfloat16") on bits).
    Raises DTypeError for types without a counterpart, and for what is not NumPy (see asarray()).
    """
    import numpy as np

    if not isinstance(array, (np.ndarray, np.generic)):
        raise DTypeError(
            f"from_numpy: expected a NumPy array, got a {type(array).__name__}; asarray() takes other things"
        )
    dtype = DataType.from_numpy_dtype(array.dtype)
    result = native.empty(array.shape, dtype)
    if result.size:
        host = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        native.copy_from_host(result, host.view(dtype.to_numpy_dtype()))
    return result


def asarray(
    obj: Any, dtype: DTypeLike | None = None, *, device: int | None = None, copy: bool | None = None
) -> GPUArray:
    """obj as a GPUArray: a GPUArray itself, another library's device array (its memory), NumPy arrays, numbers, lists.

    dtype: as NumPy would choose when left out. device: index of the device to have it on, by default where it is, or
    the current one for data of the host. copy: None copies where it must, True always, False raises ValueError instead
    (data of the host and conversions cannot do without). Raises DTypeError for what NumPy cannot make a numeric array
    of, BufferError for device memory that cannot be taken.
    """
    array = _taken(obj)
    if array is None:
        if copy is False:
            raise ValueError(f"asarray: a {type(obj).__name__} cannot be on the device without a copy; allow it")
        return _from_host(obj, dtype, device)
    if device is not None and device != array.device:
        if copy is False:
            raise ValueError(f"asarray: device {device} needs a copy of an array on device {array.device}; allow it")
        array, copy = array.to_device(device), None
    if dtype is not None and array.dtype != as_dtype(dtype):
        if copy is False:
            raise ValueError(f"asarray: {array.dtype} to {as_dtype(dtype)} needs a copy; allow it")
        return array.astype(dtype)
    return array.clone() if copy else array


def array(obj: Any, dtype: DTypeLike | None = None, *, copy: bool | None = True, ndmin: int = 0) -> GPUArray:
    """A new GPUArray with the values of obj: numbers, nested lists, NumPy arrays, arrays of the device.

    dtype: as NumPy would choose when left out (float64 for Python floats). copy: True always copies, None where it
    must, False raises ValueError instead. ndmin: axes at least, put in front. Errors as asarray().
    """
    made = asarray(obj, dtype, copy=copy)
    return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def _taken(obj: Any) -> GPUArray | None:
    """obj when it is in device memory, without a copy; None for everything else."""
    if isinstance(obj, native.ArrayBase):
        return obj  # type: ignore[return-value]
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        from pygpukit.array import dlpack

        return None if dlpack.is_on_host(obj) else dlpack.from_dlpack(obj)
    if hasattr(obj, "__cuda_array_interface__"):
        from pygpukit.array.interop import from_cuda_array_interface

        return from_cuda_array_interface(obj)
    return None


def _from_host(obj: Any, dtype: DTypeLike | None, device: int | None) -> GPUArray:
    import numpy as np

    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is None or isinstance(obj, (np.ndarray, np.generic)) or wanted.to_numpy_dtype().name != wanted.name:
        host = np.asarray(obj)
    else:
        host = np.asarray(obj, wanted.to_numpy_dtype())  # Python numbers go to their type at once, so none is changed
    with current_device(device):
        array = from_numpy(host)
        return array if wanted is None or array.dtype == wanted else array.astype(wanted)


def _filled(shape: ShapeLike, value: promotion.Scalar, dtype: DataType) -> GPUArray:
    pattern = scalars.encode(value, dtype)
    array = native.empty(shape, dtype)
    if array.size:
        native.fill(array, pattern)
    return array
