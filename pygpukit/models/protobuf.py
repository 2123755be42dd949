"""The wire format of Protocol Buffers: the fields of a message, by number, as integers or as where their bytes lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pygpukit.models.mapped import MappedFile

if TYPE_CHECKING:
    import mmap

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}


class Message:
    """A message that lies from byte `start` up to `end` of a file. Raises ModelFileError for what is no message."""

    def __init__(self, file: MappedFile, start: int, end: int) -> None:
        self._file, self._buffer = file, file.buffer()
        self._start, self._end = start, end

    def fields(self) -> Iterator[tuple[int, int, int, int]]:
        """(number, wire type, value, end) of each field: an integer's value, or where the bytes begin and end."""
        at = self._start
        while at < self._end:
            tag, at = self._varint(at)
            number, kind = tag >> 3, tag & 7
            if kind == VARINT:
                value, at = self._varint(at)
                yield number, kind, value, at
                continue
            if kind == BYTES:
                count, at = self._varint(at)
            elif kind in _SIZES:
                count = _SIZES[kind]
            else:
                raise self._file.error(f"at byte {at} is a field of wire type {kind}, which no message has")
            if at + count > self._end:
                raise self._file.error(f"a field at byte {at} has {count} bytes, but its message ends at {self._end}")
            yield number, kind, at, at + count
            at += count

    def varints(self, start: int, end: int) -> Iterator[int]:
        """The integers of a packed field, signed."""
        while start < end:
            value, start = self._varint(start)
            yield signed(value)

    def _varint(self, at: int) -> tuple[int, int]:
        buffer: mmap.mmap = self._buffer
        value = 0
        for shift in range(0, 70, 7):
            if at >= self._end:
                break
            byte = buffer[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF, at
        raise self._file.error(f"the integer that ends at byte {at} is cut off or longer than ten bytes")


def signed(value: int) -> int:
    """An int64 from the 64 bits that a varint carries."""
    return value - (1 << 64) if value >> 63 else value
