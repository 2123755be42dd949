"""Keys and values in fp8 on the host: codes and scales of heads, and what they stand for; key_codes.cuh in NumPy."""

from __future__ import annotations

from typing import Any

from pygpukit.core.dtypes import float8_e4m3

_NO_NUMBER, _MIN_SCALE = 0xFF, 127 - 15  # key_codes.cuh: kNoNumber, kMinScale


def encoded(heads: Any) -> tuple[Any, Any]:
    """Codes of E4M3 and exponents, both uint8, of heads (..., head_dim) in float32: each head's scale is the least
    power of two, of 2^-15 or more, by which no element is larger than 448."""
    import numpy as np

    from pygpukit.ops import storage

    largest = np.abs(heads).max(axis=-1).astype(np.float32).view(np.uint32)
    above = (largest & np.uint32(0x7FFFFF)) > np.uint32(0x600000)
    exponents = np.maximum((largest >> np.uint32(23)).astype(np.int32) - 8 + above, _MIN_SCALE)
    is_number = largest < np.uint32(0x7F800000)
    scaled = np.ldexp(heads, np.where(is_number, 127 - exponents, 0)[..., None])
    codes = storage.encoded(np.where(is_number[..., None], scaled, 0), float8_e4m3)
    return codes, np.where(is_number, exponents, _NO_NUMBER).astype(np.uint8)


def decoded(codes: Any, exponents: Any) -> Any:
    """The numbers, float32, that codes (..., head_dim) with exponents (...) stand for."""
    import numpy as np

    from pygpukit.ops import storage

    scales = (exponents.astype(np.uint32) << np.uint32(23)).view(np.float32)
    scales = np.where(exponents == _NO_NUMBER, np.float32(np.nan), scales)
    return storage.decoded(codes, float8_e4m3) * scales[..., None]
