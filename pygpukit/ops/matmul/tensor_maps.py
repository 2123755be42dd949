"""Descriptions of arrays for the copies of SM 9.0 (CUtensorMap): made by the driver, opened at run time by ctypes."""

from __future__ import annotations

import ctypes
import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import GPUError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_BYTES, _ALIGNMENT = 128, 64  # of a map
_LINE, _LINES = 128, 128  # hopper.cu: bytes and lines of a box
# CUtensorMapDataType. 8- and 16-bit floats are copied as they are, float32 is rounded to tf32.
_TYPES = {1: 0, 2: 1, 4: 11}
_SWAPPED, _PROMOTED = 3, 3  # CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B


def tensor_map(array: GPUArray, length: int, lines: int, lead: int, matrices: int, step: int) -> bytes:
    """The map of a stack of matrices: lines of `length` elements, `lead` apart; matrices `step` elements apart.

    array: whose first element is the stack's, at a multiple of 16 bytes, as the strides must be. The same bytes for the
    same address and numbers. Raises GPUError with the driver's status.
    """
    size = array.itemsize
    strides = (lead * size, (step if matrices > 1 else lines * lead) * size)
    extents = (length, lines, matrices)
    if is_sim():  # hopper_sim.cuh: SimMap; the kernel has the address from elsewhere
        return struct.pack("<5Q4I", *extents, *strides, _LINE // size, _LINES, size, size == 4).ljust(_BYTES, b"\0")
    return _encoded(native.current_device(), array.device_ptr, size, extents, strides)


@lru_cache(maxsize=4096)
def _encoded(_: int, address: int, size: int, extents: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    room = (ctypes.c_ubyte * (_BYTES + _ALIGNMENT))()
    start = -ctypes.addressof(room) % _ALIGNMENT
    status = _driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(ctypes.addressof(room) + start),
        _TYPES[size],
        ctypes.c_uint32(3),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * 3)(*extents),
        (ctypes.c_uint64 * 2)(*strides),
        (ctypes.c_uint32 * 3)(_LINE // size, _LINES, 1),
        (ctypes.c_uint32 * 3)(1, 1, 1),
        0,
        _SWAPPED,
        _PROMOTED,
        0,
    )
    if status:
        raise GPUError(
            f"cuTensorMapEncodeTiled answers with status {status} for extents {extents} and strides {strides} of "
            f"elements of {size} bytes at {address:#x}; leave backend='hopper' out"
        )
    return bytes(room[start : start + _BYTES])


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise GPUError(f"the driver cannot be opened for cuTensorMapEncodeTiled: {error}") from None
