"""Numbers as people write them, checked: sizes in bytes ("512MB", 1024), whole numbers, factors of float32."""

from __future__ import annotations

import functools
import operator
import re
from typing import SupportsFloat, SupportsIndex

from pygpukit.core.errors import InvalidSpecError

KB = 1024
MB = 1024 * KB
GB = 1024 * MB
TB = 1024 * GB

_UNITS = {"B": 1, "KB": KB, "MB": MB, "GB": GB, "TB": TB, "KIB": KB, "MIB": MB, "GIB": GB, "TIB": TB}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)
_UINT64 = 2**64
_LARGEST, _SMALLEST = (2 - 2**-23) * 2.0**127, 2.0**-149  # of float32, above 0

MemoryLike = str | SupportsIndex | None


def parse_memory(memory: MemoryLike, field: str = "memory") -> int:
    """Bytes of a request: a whole number of bytes, or a string with B, KB, MB, GB, TB or KiB, MiB, GiB, TiB.

    All of these are powers of 1024, as in the documented `1024 * 1024 * 100  # 100 MB`. None is 0.
    Raises InvalidSpecError naming the field for anything else.
    """
    if memory is None:
        return 0
    if type(memory) is int:
        bytes_ = memory
    elif isinstance(memory, str):
        bytes_ = _size(memory, field)
    else:
        bytes_ = whole(memory, field, 'a whole number of bytes, or "512MB", "1.5GB"')
    if not 0 <= bytes_ < _UINT64:
        raise InvalidSpecError(f"{field}={memory!r} is out of range; it must be 0 or more and below 2**64 bytes", field)
    return bytes_


@functools.lru_cache(maxsize=256)
def _size(text: str, field: str) -> int:
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise InvalidSpecError(f'{field}={text!r} is no size; write bytes as an int, or "512MB", "1.5GB"', field)
    whole, _, fraction = match[1].partition(".")
    bytes_, rest = divmod(int(whole + fraction) * unit, 10 ** len(fraction))
    if rest:
        raise InvalidSpecError(f"{field}={text!r} is not a whole number of bytes", field)
    return bytes_


def whole(value: SupportsIndex, field: str, expected: str) -> int:
    """A whole number, or InvalidSpecError that names the field and says what is wanted."""
    if isinstance(value, bool):
        raise InvalidSpecError(f"{field}={value!r}; give {expected}", field)
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidSpecError(f"{field}={value!r}; give {expected}", field) from None


def factor(value: SupportsFloat, field: str, positive: bool = False) -> float:
    """A finite number that float32 has, rounded; above 0 there if `positive`. InvalidSpecError names the field."""
    expected = "a finite number above 0" if positive else "a finite number"
    try:
        number = float(value) if hasattr(value, "__float__") else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not abs(number) <= _LARGEST or (positive and number < _SMALLEST):
        raise InvalidSpecError(f"{field}={value!r}; give {expected} that float32 has", field)
    return number
