"""Bits of small floats and integers that NumPy has no types for, from values that they have exactly."""

from __future__ import annotations

import numpy as np


def bits(values: np.ndarray, kind: str) -> np.ndarray:
    """kind: f16, bf16, tf32, e4m3, e5m2, s8 or u8, as PTX calls them. Raises ValueError for a value without bits."""
    if kind == "f16":
        return values.astype(np.float16)
    if kind in ("bf16", "tf32"):
        words = values.astype(np.float32).view(np.uint32)
        return (words >> 16).astype(np.uint16) if kind == "bf16" else words
    if kind in ("s8", "u8"):
        return values.astype(np.int8 if kind == "s8" else np.uint8)
    table = {_value(code, kind): code for code in reversed(range(256))}
    try:
        return np.vectorize(lambda value: table[value], otypes=[np.uint8])(values)
    except KeyError as error:
        raise ValueError(f"{error.args[0]} has no bits in {kind}") from None


def _value(code: int, kind: str) -> float:
    fraction, bias = (3, 7) if kind == "e4m3" else (2, 15)
    exponent, rest = code >> fraction & (0xF if kind == "e4m3" else 0x1F), code & ((1 << fraction) - 1)
    size = (
        rest * 2.0 ** (1 - bias - fraction) if not exponent else (1 + rest / (1 << fraction)) * 2.0 ** (exponent - bias)
    )
    return -size if code >> 7 else size
