"""DLPack 1.x both ways: handing arrays to other libraries and taking theirs, in stream order, without copies.

Devices: kDLCUDA on a GPU. The simulated device is kDLExtDev: its memory is the host's, but work on it is in stream
order, so it is not offered as CPU memory. Host and device exchange data only when a device or a copy was asked for.
The capsules themselves are made and taken in native/bindings/dlpack.cpp.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.device import DeviceLike, current_device, index_of
from pygpukit.core.dtypes import STORAGE_ONLY, DataType

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

CPU, CUDA, CUDA_HOST, EXTENSION, CUDA_MANAGED = 1, 2, 3, 12, 13  # DLDeviceType
VERSION = (1, 1)  # what dlpack.cpp writes; padded 4-bit types and fp8 are new in 1.1
_HOST = (CPU, CUDA_HOST)
_LEGACY_DEFAULT = 1  # the standard's number for CUDA's stream 0
_NO_ORDER = -1


def device_of(array: GPUArray) -> tuple[int, int]:
    """(DLDeviceType, device index)."""
    return EXTENSION if is_sim() else CUDA, array.device


def export(
    array: GPUArray,
    stream: int | None,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """The capsule of GPUArray.__dlpack__(), whose docstring tells the rules."""
    here = device_of(array)
    if dl_device is None and is_sim():
        raise BufferError(
            "__dlpack__: the simulated device's memory is not handed over implicitly; call .to_numpy(), or ask for a "
            "copy on the host with np.from_dlpack(array, device='cpu')"
        )
    requested = here if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    versioned = max_version is not None and max_version[0] >= 1
    if array.dtype in STORAGE_ONLY and not versioned:
        raise BufferError(
            f"__dlpack__: {array.dtype} needs DLPack 1.1, the consumer asked for less; hand over .view('uint8')"
        )
    if requested == (CPU, 0):
        if copy is False:
            raise BufferError("__dlpack__: device memory cannot be seen from the host without a copy; allow it")
        if stream is not None:
            raise BufferError(f"__dlpack__: stream {stream!r} for a copy on the host, which has no streams; use None")
        host = array.to_numpy()
        return native.dlpack_export(array, CPU, versioned, True, _NO_ORDER, host)
    if requested != here:
        raise BufferError(
            f"__dlpack__: the array is on device {here} (DLDeviceType, index), {requested} was asked for; "
            "use .to_device(...) first, or (1, 0) for a copy on the host"
        )
    order = _consumer(stream)
    if copy:
        array = array.clone()
    return native.dlpack_export(array, here[0], versioned, bool(copy), order)


def _consumer(stream: int | None) -> int:
    """The driver's handle of the consumer's stream by the standard's numbers for CUDA; -1 for no ordering."""
    if stream is None:
        return 0
    try:
        number = operator.index(stream)
    except TypeError:
        raise BufferError(f"__dlpack__: stream must be None or an int, not a {type(stream).__name__}") from None
    if number == 0 or number < _NO_ORDER:
        raise BufferError(
            f"__dlpack__: stream {number} is not allowed; use None or 1 (legacy default stream), 2 (per-thread "
            "default stream), -1 (no ordering) or a stream's handle"
        )
    return 0 if number == _LEGACY_DEFAULT else number


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> GPUArray:
    """The data of another library's array, as a GPUArray: the same memory when it is on this kind of device.

    x: anything with __dlpack__ and __dlpack_device__ (PyTorch, CuPy, JAX, NumPy, GPUArray). The producer's work is
    ordered before work of the current stream, and the memory stays alive until ours has passed.
    device: index of the device to have it on; None means where it is. Arrays of the host have to be copied, which is
    done only when device or copy=True says so. copy: None copies where it must (read-only memory), True always, False
    never.
    Raises BufferError for memory, types and layouts that cannot be taken, TypeError for x without the protocol,
    DeviceMismatchError for a device that does not exist or is not the current one.
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: a {type(x).__name__} has no __dlpack__() and __dlpack_device__()")
    kind, index = (int(part) for part in x.__dlpack_device__())
    if device is not None:
        device = index_of(device, "from_dlpack")
    if kind in _HOST:
        if device is None and not copy:
            raise BufferError(
                "from_dlpack: the array is on the host and nothing is copied to the device implicitly; pass "
                "device=0 or copy=True, or use gp.from_numpy(...)"
            )
        if copy is False:
            raise BufferError("from_dlpack: an array of the host cannot be on the device without a copy; allow it")
        return _from_host(x, native.current_device() if device is None else device)
    ours = kind == EXTENSION and isinstance(x, native.ArrayBase) if is_sim() else kind in (CUDA, CUDA_MANAGED)
    if not ours:
        what = "the simulated device" if is_sim() else "CUDA devices"
        raise BufferError(
            f"from_dlpack: memory of DLDeviceType {kind} is not on {what}; copy it to the host in the other library "
            "and use gp.from_numpy(...)"
        )
    if device is not None and device != index:
        if copy is False:
            raise BufferError(f"from_dlpack: the array is on device {index}, device {device} needs a copy; allow it")
        return from_dlpack(x, copy=copy).to_device(device)
    return _from_device(x, (kind, index), copy)


def is_on_host(x: Any) -> bool:
    """True for an array of another library that is in host memory."""
    return int(x.__dlpack_device__()[0]) in _HOST


def _from_device(x: Any, device: tuple[int, int], copy: bool | None) -> GPUArray:
    handle = native.current_stream().handle or _LEGACY_DEFAULT
    keyed = {"dl_device": device} if is_sim() else {}
    keeper, buffer, address, nbytes, shape, strides, offset, dtype, read_only = _take(x, stream=handle, **keyed)
    array = over_foreign(address, nbytes, shape, strides, offset, dtype, keeper, buffer[1])
    if read_only and copy is False:
        raise BufferError("from_dlpack: the memory is read-only and arrays here are not; allow a copy")
    return array.clone() if copy or read_only else array


def _from_host(x: Any, device: int) -> GPUArray:
    import numpy as np

    keeper, _, address, nbytes, shape, strides, offset, dtype, _ = _take(x, stream=None)
    memory = native.host_memory(address, nbytes) if nbytes else b""
    elements = np.ndarray(shape, dtype.to_numpy_dtype(), memory, offset, strides)
    result = on_device(np.ascontiguousarray(elements), shape, dtype, device)
    del elements, memory, keeper  # the producer's memory was needed until here
    return result


def to_device(array: GPUArray, device: DeviceLike, stream: Any) -> GPUArray:
    """GPUArray.to_device()."""
    if stream is not None:
        raise ValueError(f"to_device: stream must be None, not {stream!r}; make a stream current with `with stream:`")
    place = index_of(device, "to_device")
    if place == array.device:
        return array
    with current_device(array.device):
        dense = array.contiguous()
    with current_device(place):
        result = native.empty(dense.shape, dense.dtype)
    native.copy_peer(result, dense)
    return result


def on_device(host: Any, shape: tuple[int, ...], dtype: DataType, device: int) -> GPUArray:
    """A new array on a device with the bytes of a dense host array. The copy is finished on return."""
    with current_device(device):
        result = native.empty(shape, dtype)
        if result.size:
            native.copy_from_host(result, host)
    return result


def over_foreign(
    address: int,
    nbytes: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    dtype: DataType,
    keeper: Any,
    device: int,
) -> GPUArray:
    """An array over memory of another library, which the keeper holds alive. Strides and offset in bytes."""
    flat = native.wrap(address, nbytes, nbytes // dtype.itemsize, dtype, keeper, device)
    return native.view(flat, shape, strides, offset)


def _take(x: Any, **asked: Any) -> tuple[Any, ...]:
    """x's tensor, taken over. Producers older than DLPack 1.0 do not know the newer keywords."""
    try:
        capsule = x.__dlpack__(max_version=VERSION, **asked)
    except TypeError:
        if "dl_device" in asked:
            raise
        capsule = x.__dlpack__(**asked)
    return native.dlpack_import(capsule)
