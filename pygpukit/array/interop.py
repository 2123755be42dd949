"""The CUDA array interface, version 3, both ways: addresses only. DLPack (array/dlpack.py) hands over ownership."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import layout
from pygpukit.array.promotion import COMPLEX, FLOATS, UNSIGNED
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import STORAGE_ONLY, DataType, bfloat16, bool_
from pygpukit.core.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_LEGACY_DEFAULT_STREAM = 1  # the interface's number for stream 0, which it does not allow


def cuda_array_interface(array: GPUArray) -> dict[str, Any]:
    """The interface's dictionary, with the current stream as the one to order on.

    Raises AttributeError, so that hasattr() is False, on the simulated device and for types the interface cannot name.
    """
    if is_sim():
        raise AttributeError("__cuda_array_interface__: the simulated device has no CUDA memory; use .to_numpy()")
    return {
        "version": 3,
        "shape": array.shape,
        "strides": None if array.is_contiguous() else array.strides,
        "typestr": typestr(array.dtype),
        "data": (array.device_ptr if array.size else 0, False),
        "stream": native.current_stream().handle or _LEGACY_DEFAULT_STREAM,
    }


def typestr(dtype: DataType) -> str:
    """NumPy's short name of a type. Raises AttributeError for the types it has none for."""
    if dtype == bfloat16 or dtype in STORAGE_ONLY:
        raise AttributeError(
            f"__cuda_array_interface__ has no name for {dtype}; hand over .view('uint{8 * dtype.itemsize}') instead"
        )
    kind = "b" if dtype == bool_ else "f" if dtype in FLOATS else "c" if dtype in COMPLEX else "i"
    if dtype in UNSIGNED:
        kind = "u"
    return f"{'|' if dtype.itemsize == 1 else '<'}{kind}{dtype.itemsize}"


def from_cuda_array_interface(obj: Any) -> GPUArray:
    """The memory of another library's array, without a copy; obj lives as long as the result and its work.

    Its work on the stream it names is ordered before work of the current stream. Raises BufferError for read-only
    memory, masks and addresses that are not multiples of the item size, DTypeError for types without a counterpart,
    ShapeError for a malformed shape.
    """
    from pygpukit.array.dlpack import over_foreign

    if is_sim():
        raise BufferError("the simulated device cannot see CUDA memory; copy it to the host in the other library first")
    facts = obj.__cuda_array_interface__
    if facts.get("mask") is not None:
        raise BufferError("__cuda_array_interface__: masked arrays are not supported; apply the mask first")
    address, read_only = facts["data"]
    if read_only:
        raise BufferError("__cuda_array_interface__: the memory is read-only and arrays here are not; copy it first")
    dtype = DataType.from_numpy_dtype(_checked_typestr(facts["typestr"]))
    shape = tuple(facts["shape"])
    strides = facts.get("strides")
    strides = layout.contiguous_strides(shape, dtype.itemsize) if strides is None else tuple(strides)
    if len(strides) != len(shape) or any(extent < 0 for extent in shape):
        raise ShapeError(f"__cuda_array_interface__: shape {shape} and strides {strides} do not go together")
    unsaid = _LEGACY_DEFAULT_STREAM if facts["version"] < 3 else None  # older versions name no stream
    if (stream := facts.get("stream", unsaid)) is not None:
        if stream == 0:
            raise BufferError("__cuda_array_interface__: stream 0 is not allowed; 1 is the legacy default stream")
        native.order_streams(0 if stream == _LEGACY_DEFAULT_STREAM else stream, native.current_stream().handle)
    if 0 in shape:
        return over_foreign(0, 0, shape, strides, 0, dtype, obj, native.current_device())
    if address % dtype.itemsize:
        raise BufferError(f"__cuda_array_interface__: address {address:#x} is not a multiple of {dtype.itemsize} bytes")
    low, high = layout.byte_span(shape, strides, 0, dtype.itemsize)
    return over_foreign(address + low, high - low, shape, strides, -low, dtype, obj, native.current_device())


def _checked_typestr(name: str) -> str:
    if name[:1] == ">" and name[2:] != "1":
        raise DTypeError(f"__cuda_array_interface__: type {name!r} has the other byte order; convert it first")
    return name
