"""Pictures of numbers: levels as colours, as a PNG whose bytes are the same everywhere."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

# Dark blue to yellow through green, evenly spaced: red, green, blue.
_COLOURS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))


def palette(levels: int) -> bytes:
    """The colours of so many levels, from the lowest on: red, green and blue of each."""
    return bytes(part for level in range(levels) for part in _colour(level / (levels - 1)))


def indexed_png(pixels: np.ndarray[Any, Any], colours: bytes) -> bytes:
    """The pixels, uint8 of shape (height, width), through a palette. Not compressed: every zlib gives the same."""
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # 0: no filter
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),  # 8 bits, indexed
        (b"PLTE", colours),
        (b"IDAT", zlib.compress(rows, 0)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _colour(level: float) -> tuple[int, ...]:
    position = level * (len(_COLOURS) - 1)
    at = min(int(position), len(_COLOURS) - 2)
    return tuple(round(a + (b - a) * (position - at)) for a, b in zip(_COLOURS[at], _COLOURS[at + 1], strict=True))
