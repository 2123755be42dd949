"""Checks of what the documented caches are given."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsFloat, SupportsIndex

from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import units


def parse_uint64(value: SupportsIndex, field: str, minimum: int = 0) -> int:
    """A whole number that fits in 64 bits. Raises InvalidSpecError."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not minimum <= number < 1 << 64:
        raise InvalidSpecError(f"{field}={value!r}; give a whole number, {minimum} or more and below 2**64", field)
    return number


def parse_texts(texts: Sequence[str], field: str) -> list[str]:
    """A list of strings, not one string. Raises InvalidSpecError."""
    if not isinstance(texts, Sequence) or isinstance(texts, str):
        raise InvalidSpecError(f"{field}={texts!r}; give a list of strings", field)
    return [units.parse_text(text, field) for text in texts]


def parse_ttl(seconds: SupportsFloat) -> float:
    """Seconds, or 0 for ever. Raises InvalidSpecError."""
    return 0.0 if seconds == 0 else units.parse_positive(seconds, "ttl_seconds")


def parse_flag(value: object, field: str) -> bool:
    """True or False. Raises InvalidSpecError."""
    if not isinstance(value, bool):
        raise InvalidSpecError(f"{field}={value!r}; give True or False", field)
    return value
