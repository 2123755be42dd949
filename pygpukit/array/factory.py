"""Making arrays: by shape, by value, from host data. All in the order of the current stream.

On the current device, or on another that `device` says: a number, a gp.cuda.Device, or a text such as "cuda:1". What is
like an array is made on its device.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit._core import native
from pygpukit.array import layout, promotion, scalars
from pygpukit.array.dlpack import from_dlpack as from_dlpack
from pygpukit.array.order import columns
from pygpukit.core.device import DeviceLike, current_device, index_of
from pygpukit.core.dtypes import DataType, as_dtype, bool_, float64, int64
from pygpukit.core.errors import DTypeError, OutOfMemoryError, ShapeError

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

    ShapeLike: TypeAlias = "int | Sequence[int]"

# The compiled function itself: the shortest way from Python to the pool.
empty = native.empty


def empty_on(device: DeviceLike, shape: ShapeLike, dtype: DTypeLike | None, order: str | None) -> GPUArray:
    """empty() of a device; what empty() itself calls where it is given one. None: not said."""
    return _on(device, empty, shape, "float32" if dtype is None else dtype, order)


def _on(device: DeviceLike | None, make: Callable[..., GPUArray], *args: Any) -> GPUArray:
    if device is None or (type(device) is int and device == native.current_device()):
        return make(*args)
    with current_device(device):
        return make(*args)


def full(
    shape: ShapeLike,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: DeviceLike | None = None,
) -> GPUArray:
    """A new array with every element set to fill_value, a number or an array that broadcasts.

    dtype: the number's own kind (bool, int64, float64, complex128), or the array's, when left out. order: "C", rows
    first, or "F", columns first. Raises ShapeError, DTypeError, OverflowError (an integer that does not fit),
    OutOfMemoryError.
    """
    if device is not None:
        return _on(device, full, shape, fill_value, dtype, order)
    if columns(order):
        return full(shape, fill_value, dtype).copy(order="F")
    result_dtype = None if dtype is None else as_dtype(dtype)
    if isinstance(fill_value, complex) and result_dtype is not None and result_dtype not in (*promotion.COMPLEX, bool_):
        import numpy as np

        lost = getattr(np, "exceptions", np).ComplexWarning
        warnings.warn(f"full: the imaginary part of {fill_value} is lost in {result_dtype}", lost, stacklevel=2)
        fill_value = fill_value.real
    if not isinstance(fill_value, (bool, int, float, complex)):
        value = asarray(fill_value)
        array = native.empty(shape, value.dtype if dtype is None else dtype)
        array[...] = value
        return array
    return _filled(shape, fill_value, as_dtype(type(fill_value) if dtype is None else dtype))


def zeros(
    shape: ShapeLike, dtype: DTypeLike = "float32", order: str = "C", *, device: DeviceLike | None = None
) -> GPUArray:
    """A new array of zeros (of zero bits for types without arithmetic). order, device and errors as full()."""
    if device is not None:
        return _on(device, zeros, shape, dtype, order)
    if order != "C" and columns(order):
        return zeros(_reversed(shape), dtype).T
    array = native.empty(shape, dtype)
    if array.size:
        native.fill(array, bytes(array.itemsize))
    return array


def ones(
    shape: ShapeLike, dtype: DTypeLike = "float32", order: str = "C", *, device: DeviceLike | None = None
) -> GPUArray:
    """A new array of ones. order, device and errors as full()."""
    if device is not None:
        return _on(device, ones, shape, dtype, order)
    if order != "C" and columns(order):
        return ones(_reversed(shape), dtype).T
    return _filled(shape, 1, as_dtype(dtype))


def empty_like(
    array: GPUArray,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    shape: ShapeLike | None = None,
    device: DeviceLike | None = None,
) -> GPUArray:
    """A new array with the shape and type of another; its contents are undefined.

    dtype, shape, order, device: others instead.
    """
    return _on(array.device if device is None else device, empty, *_like(array, dtype, order, shape))


def zeros_like(
    array: GPUArray,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    shape: ShapeLike | None = None,
    device: DeviceLike | None = None,
) -> GPUArray:
    """zeros() with the shape and type of another array. dtype, shape, order, device: others instead."""
    return _on(array.device if device is None else device, zeros, *_like(array, dtype, order, shape))


def ones_like(
    array: GPUArray,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    shape: ShapeLike | None = None,
    device: DeviceLike | None = None,
) -> GPUArray:
    """ones() with the shape and type of another array. dtype, shape, order, device: others instead."""
    return _on(array.device if device is None else device, ones, *_like(array, dtype, order, shape))


def full_like(
    array: GPUArray,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: str = "K",
    *,
    shape: ShapeLike | None = None,
    device: DeviceLike | None = None,
) -> GPUArray:
    """full() with the shape and type of another array. dtype, shape, order, device: others instead."""
    extents, own, result_dtype = _like(array, dtype, order, shape)
    return _on(array.device if device is None else device, full, extents, fill_value, own, result_dtype)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> GPUArray:
    """start, start + step, ... up to but without stop; arange(n) counts from 0.

    dtype: int64 when all are integers, else float64, as NumPy. The values are made on the host and copied once.
    """
    if device is not None:
        return _on(device, arange, start, stop, step, dtype)
    import numpy as np

    if stop is None:
        start, stop = 0, start
    result_dtype = as_dtype(dtype) if dtype is not None else None
    if result_dtype is None:
        result_dtype = int64 if all(isinstance(x, int) for x in (start, stop, step)) else float64
    try:
        numbers = np.arange(start, stop, step)
    except MemoryError as error:
        raise OutOfMemoryError(f"arange: the values do not fit the host, where they are made: {error}") from None
    if result_dtype == bool_ and numbers.size > 2:
        raise TypeError("arange: bool has two values only; make integers and compare them")
    values = from_numpy(numbers)
    return values if values.dtype == result_dtype else values.astype(result_dtype)


def from_numpy(array: np.ndarray[Any, Any], *, device: DeviceLike | None = None) -> GPUArray:
    """A C-contiguous copy of a NumPy array (or scalar) on the device, of the same type; `array` may change afterwards.

    Arrays of `ml_dtypes` keep their type; NumPy's uint16 stays uint16 (use .view("bfloat16") on bits).
    Raises DTypeError for types without a counterpart, and for what is not NumPy (see asarray()).
    """
    if device is not None:
        return _on(device, from_numpy, array)
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
    obj: Any, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None, copy: bool | None = None
) -> GPUArray:
    """obj as a GPUArray: a GPUArray itself, another library's device array (its memory), NumPy arrays, numbers, lists.

    dtype: as NumPy would choose when left out. device: the one to have it on, by default where it is, or
    the current one for data of the host. copy: None copies where it must, True always, False raises ValueError instead
    (data of the host and conversions cannot do without). Raises DTypeError for what NumPy cannot make a numeric array
    of, BufferError for device memory that cannot be taken.
    """
    array = _taken(obj)
    if array is None:
        if copy is False:
            raise ValueError(f"asarray: a {type(obj).__name__} cannot be on the device without a copy; allow it")
        return _from_host(obj, dtype, device)
    if device is not None and (place := index_of(device, "asarray")) != array.device:
        if copy is False:
            raise ValueError(f"asarray: device {place} needs a copy of an array on device {array.device}; allow it")
        array, copy = array.to_device(place), None
    if dtype is not None and array.dtype != as_dtype(dtype):
        if copy is False:
            raise ValueError(f"asarray: {array.dtype} to {as_dtype(dtype)} needs a copy; allow it")
        return array.astype(dtype)
    return array.clone() if copy else array


def array(
    obj: Any,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    ndmin: int = 0,
    device: DeviceLike | None = None,
) -> GPUArray:
    """A new GPUArray with the values of obj: numbers, nested lists, NumPy arrays, arrays of the device.

    dtype: as NumPy would choose when left out (float64 for Python floats). copy: True always copies, None where it
    must, False raises ValueError instead. ndmin: axes at least, put in front. device and errors as asarray().
    """
    result = asarray(obj, dtype, device=device, copy=copy)
    return result.reshape((1,) * (ndmin - result.ndim) + result.shape) if result.ndim < ndmin else result


def _like(array: GPUArray, dtype: Any, order: str, shape: ShapeLike | None) -> tuple[ShapeLike, Any, str]:
    return (
        array.shape if shape is None else shape,
        array.dtype if dtype is None else dtype,
        "F" if columns(order, array) else "C",
    )


def _reversed(shape: ShapeLike) -> tuple[int, ...]:
    return layout.integers(shape, "shape")[::-1]


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


def _from_host(obj: Any, dtype: DTypeLike | None, device: DeviceLike | None) -> GPUArray:
    import numpy as np

    if isinstance(obj, (list, tuple)) and _holds_arrays(obj):
        with current_device(device):
            return _stacked([asarray(each) for each in obj], dtype)

    target = None if dtype is None else as_dtype(dtype)
    if target is None or isinstance(obj, (np.ndarray, np.generic)) or target.to_numpy_dtype().name != target.name:
        host = np.asarray(obj)
    else:
        host = np.asarray(obj, target.to_numpy_dtype())  # Python numbers go to their type at once, so none is changed
    with current_device(device):
        array = from_numpy(host)
        return array if target is None or array.dtype == target else array.astype(target)


def _stacked(parts: list[GPUArray], dtype: DTypeLike | None) -> GPUArray:
    """Arrays of one shape along a new first axis."""
    if any(part.shape != parts[0].shape for part in parts):
        raise ShapeError(f"asarray: the arrays of a list have shapes {[part.shape for part in parts]}; must be equal")
    common = reduce(promotion.promote, (part.dtype for part in parts)) if dtype is None else dtype
    stacked = native.empty((len(parts), *parts[0].shape), common)
    for position, part in enumerate(parts):
        stacked[position] = part
    return stacked


def _holds_arrays(obj: Any) -> bool:
    """True where a nested list has arrays of the device in it."""
    return any(
        isinstance(each, native.ArrayBase) or (isinstance(each, (list, tuple)) and _holds_arrays(each)) for each in obj
    )


def _filled(shape: ShapeLike, value: promotion.Scalar, dtype: DataType) -> GPUArray:
    pattern = scalars.encode(value, dtype)
    array = native.empty(shape, dtype)
    if array.size:
        native.fill(array, pattern)
    return array
