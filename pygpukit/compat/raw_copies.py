"""Copies between raw host memory and arrays, and between arrays by byte offset: the documented low-level calls."""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.device import get_memory_info
from pygpukit.core.errors import ShapeError
from pygpukit.core.stream import Stream, synchronize
from pygpukit.ops.copying import copy_to

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

__all__ = [
    "copy_device_to_device_async",
    "copy_device_to_device_offset",
    "copy_to_device",
    "copy_to_device_async",
    "copy_to_device_async_raw_stream",
    "get_memory_info",
    "synchronize",
]


def copy_to_device(dst: GPUArray, src_ptr: int, size_bytes: int) -> None:
    """dst's first size_bytes <- host memory at src_ptr, which must be readable. dst is contiguous.

    Returns when src_ptr's memory may be reused. Raises ShapeError when dst is smaller or not contiguous.
    """
    if size_bytes:
        native.copy_from_host(
            _bytes(dst, 0, size_bytes, "copy_to_device"), (ctypes.c_char * size_bytes).from_address(src_ptr)
        )


def copy_to_device_async(dst: GPUArray, src_ptr: int, size_bytes: int, stream: Stream) -> None:
    """copy_to_device() in the order of a stream."""
    with stream:
        copy_to_device(dst, src_ptr, size_bytes)


def copy_to_device_async_raw_stream(dst: GPUArray, src_ptr: int, size_bytes: int, stream_handle: int) -> None:
    """copy_to_device() in the order of the stream with a driver's handle; 0 is the default stream.

    Raises InvalidSpecError on the simulated device for a handle that is not of one of its streams.
    """
    copy_to_device_async(dst, src_ptr, size_bytes, Stream.from_external(SimpleNamespace(ptr=stream_handle)))


def copy_device_to_device_async(dst: GPUArray, src: GPUArray, stream: Stream | None = None) -> None:
    """dst <- src on the device, in the order of a stream (by default the current one). Does not wait."""
    order: AbstractContextManager[Any] = nullcontext() if stream is None else stream
    with order:
        copy_to(src, dst)


def copy_device_to_device_offset(
    dst: GPUArray, dst_offset_bytes: int, src: GPUArray, src_offset_bytes: int, size_bytes: int
) -> None:
    """size_bytes from src at one byte offset to dst at another, both contiguous, in stream order. Does not wait."""
    what = "copy_device_to_device_offset"
    source, target = (_bytes(src, src_offset_bytes, size_bytes, what), _bytes(dst, dst_offset_bytes, size_bytes, what))
    copy_to(source, target)


def _bytes(array: GPUArray, offset: int, size: int, what: str) -> GPUArray:
    if not array.is_contiguous():
        raise ShapeError(f"{what}: the array of shape {array.shape} is not contiguous; use .contiguous()")
    if offset < 0 or size < 0 or offset + size > array.nbytes:
        raise ShapeError(f"{what}: bytes {offset} to {offset + size} are not inside the array's {array.nbytes}")
    return native.view(array, (size,), (1,), array.offset + offset, "uint8")
