"""Descriptions of arrays for the copies of SM 9.0 (CUtensorMap): made by the driver, opened at run time by ctypes.

A map begins with the address of the array, and nothing else of it depends on that. Kernels take the address as a
parameter of their own, and what follows it, the tail, as the next one: a call that is prepared needs no address.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import Any

from pygpukit._core import native
from pygpukit.core import pretended
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import GPUError
from pygpukit.jit.ptx.maps import tensor_map

_BYTES, _ALIGNMENT, _ADDRESS = 128, 64, 8  # of a map; of the address in it
_LINE = 128  # bytes of a box's line
# CUtensorMapDataType. 8- and 16-bit floats are copied as they are, float32 is rounded to tf32.
_TYPES, _FLOAT32 = {1: 0, 2: 1, 4: 11}, 7
_SWAPPED = {0: 0, 64: 2, 128: 3}  # CU_TENSOR_MAP_SWIZZLE_NONE, _64B and _128B, by bytes of a line
_PROMOTED = 3  # CU_TENSOR_MAP_L2_PROMOTION_L2_256B
_PLACES = 0x7F5A_1234_5670, 0x1_0000_0000  # addresses that maps are made for, and never read


def tail(
    itemsize: int,
    box: int,
    length: int,
    lines: int,
    lead: int,
    matrices: int,
    step: int,
    *,
    to_tf32: bool = True,
    line: int = _LINE,
    swizzled: bool = True,
) -> bytes:
    """Tail of a tensor map after the address, of stacked matrices: lines of `length` elements, `lead` apart; matrices
    `step` elements apart. box: lines that are copied at a time, `line` bytes of each, whose pieces are swapped where
    they are swizzled. to_tf32: float32 is rounded to it.

    The array's first element must be at a multiple of 16 bytes, as the strides must be. The same bytes for the same
    numbers. Raises GPUError with the driver's status.
    """
    strides = (lead * itemsize, (step if matrices > 1 else lines * lead) * itemsize)
    extents = (length, lines, matrices)
    sizes, swizzle = (line // itemsize, box, 1), line if swizzled else 0
    if is_sim():
        return tensor_map(0, itemsize, extents, strides, sizes, swizzle=swizzle, to_tf32=to_tf32 and itemsize == 4)[
            _ADDRESS:
        ]
    if pretended.current is not None:
        return bytes(_BYTES - _ADDRESS)
    kind = _FLOAT32 if itemsize == 4 and not to_tf32 else _TYPES[itemsize]
    return _encoded(native.current_device(), itemsize, kind, sizes, swizzle, extents, strides, _PLACES[0])[_ADDRESS:]


def refusal() -> str:
    """Why the driver's maps cannot be used so, "" where they can."""
    return _refusal(native.current_device()) if pretended.current is None else ""


@cache
def _refusal(device: int) -> str:
    first, other = (
        _encoded(device, 2, _TYPES[2], (64, 128, 1), _LINE, (64, 128, 1), (128, 16384), place) for place in _PLACES
    )
    if first[_ADDRESS:] == other[_ADDRESS:] and all(
        encoded[:_ADDRESS] == place.to_bytes(_ADDRESS, "little")
        for encoded, place in zip((first, other), _PLACES, strict=True)
    ):
        return ""
    return "this driver's CUtensorMap does not begin with the array's address"


@lru_cache(maxsize=4096)
def _encoded(
    _: int,
    size: int,
    kind: int,
    box: tuple[int, ...],
    swizzle: int,
    extents: tuple[int, ...],
    strides: tuple[int, ...],
    address: int,
) -> bytes:
    room = (ctypes.c_ubyte * (_BYTES + _ALIGNMENT))()
    start = -ctypes.addressof(room) % _ALIGNMENT
    status = _driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(ctypes.addressof(room) + start),
        kind,
        ctypes.c_uint32(3),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * 3)(*extents),
        (ctypes.c_uint64 * 2)(*strides),
        (ctypes.c_uint32 * 3)(*box),
        (ctypes.c_uint32 * 3)(1, 1, 1),
        0,
        _SWAPPED[swizzle],
        _PROMOTED,
        0,
    )
    if status:
        raise GPUError(
            f"cuTensorMapEncodeTiled answers with status {status} for extents {extents} and strides {strides} of "
            f"elements of {size} bytes; leave backend='hopper' out"
        )
    return bytes(room[start : start + _BYTES])


@cache
def _driver() -> Any:
    native.memory_info()  # opens the device: the driver answers nothing before
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise GPUError(f"the driver cannot be opened for cuTensorMapEncodeTiled: {error}") from None
