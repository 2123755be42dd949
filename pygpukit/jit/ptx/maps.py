"""Tensor maps of the simulated device: what it has in the place of a driver's CUtensorMap, and of its 128 bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

BYTES = 128
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_KNOWN = 0x50544B4D  # pk_ptx_map_known of pk_sim_ptx_tensor.h


def tensor_map(
    address: int,
    itemsize: int,
    extents: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    *,
    steps: Sequence[int] = (),
    swizzle: int = 0,
    to_tf32: bool = False,
) -> bytes:
    """The map of an array for cp.async.bulk.tensor, to be passed to a kernel by value.

    Parameters
    ----------
    address : int
        Of the array's first element.
    itemsize : int
        Bytes of an element: 1, 2, 4 or 8.
    extents : sequence of int
        Elements along each of 1 to 5 axes, the one whose elements are neighbours first.
    strides : sequence of int
        Bytes from one element to the next along each axis but the first: multiples of 16.
    box : sequence of int
        Elements of a copy along each axis, at most 256.
    steps : sequence of int
        Along each axis only every so many elements of the box are copied, at most 8; empty: every one.
    swizzle : int
        Bytes of a line whose pieces of 16 are swapped: 0, 32, 64 or 128.
    to_tf32 : bool
        Round float32 to tf32.

    Returns
    -------
    bytes
        128 bytes, for a parameter of a kernel that begins at a multiple of 64.

    Raises
    ------
    ValueError
        The numbers are not those of a map that a device takes.
    """
    rank = len(extents)
    steps = tuple(steps) or (1,) * rank
    if not 1 <= rank <= 5 or not len(strides) + 1 == len(box) == len(steps) == rank:
        raise ValueError(
            f"tensor_map: {rank} extents, {len(strides)} strides, {len(box)} of the box, {len(steps)} steps; a map has "
            "1 to 5 axes, and a stride less"
        )
    _check("itemsize", itemsize, itemsize in (1, 2, 4, 8), "1, 2, 4 or 8")
    _check("swizzle", swizzle, swizzle in _SWIZZLES, "0, 32, 64 or 128 bytes")
    _check("address", address, address % 16 == 0, "a multiple of 16")
    line = -(-box[0] // steps[0]) * itemsize
    _check("box", tuple(box), all(1 <= one <= 256 for one in box), "1 to 256 elements along each axis")
    _check("box", tuple(box), line % 16 == 0, f"lines of a multiple of 16 bytes, not {line}")
    _check("box", tuple(box), not swizzle or line <= swizzle, f"lines of at most {swizzle} bytes, as its swizzle says")
    _check("steps", tuple(steps), all(1 <= one <= 8 for one in steps), "1 to 8")
    _check("strides", tuple(strides), all(0 <= one < 1 << 40 and one % 16 == 0 for one in strides), "multiples of 16")
    _check("extents", tuple(extents), all(1 <= one < 1 << 32 for one in extents), "1 to 2^32 - 1")
    _check("to_tf32", to_tf32, not to_tf32 or itemsize == 4, "of elements of 4 bytes")
    padded = [(*values, *(0,) * (5 - len(values))) for values in (tuple(strides), tuple(extents), tuple(box), steps)]
    return struct.pack(
        "<Q4Q5I5H5B4BxI", address, *padded[0][:4], *padded[1], *padded[2], *padded[3],
        rank, itemsize, _SWIZZLES[swizzle], to_tf32, _KNOWN,
    ).ljust(BYTES, b"\0")  # fmt: skip


def _check(name: str, value: object, holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"tensor_map: {name}={value!r}; it is {what}")
