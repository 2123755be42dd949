"""Values of fp4 codes (E2M1), two a byte, and of exponents of E8M0, as float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_NUMBERS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def numbers(packed: Array) -> Array:
    """Two of each byte: (..., bytes) of uint8 as float32 (..., 2 * bytes)."""
    both = np.empty((*packed.shape, 2), np.float32)
    both[..., 0], both[..., 1] = _NUMBERS[packed & 15], _NUMBERS[packed >> 4]
    return both.reshape(*packed.shape[:-1], -1)


def powers(exponents: Array) -> Array:
    """2 to the exponents less 127; 255 is NaN."""
    with np.errstate(over="ignore"):
        powers = np.ldexp(np.float32(1), exponents.astype(np.int32) - 127)
    return np.where(exponents == 255, np.float32(np.nan), powers)
