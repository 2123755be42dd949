"""Single elements as bytes: encoding a Python number as an array element, and back. No NumPy, no device."""

from __future__ import annotations

import math
import struct
from typing import Any

from pygpukit.array import promotion
from pygpukit.core.dtypes import STORAGE_ONLY, DataType, bfloat16, bool_, float8_e4m3, float8_e5m2, int4
from pygpukit.core.errors import DTypeError

_FORMATS = {
    "bool": "<?",
    "int8": "<b",
    "int16": "<h",
    "int32": "<i",
    "int64": "<q",
    "uint8": "<B",
    "uint16": "<H",
    "uint32": "<I",
    "uint64": "<Q",
    "float16": "<e",
    "float32": "<f",
    "float64": "<d",
    "complex64": "<f",
    "complex128": "<d",
}


def encode(value: Any, dtype: DataType) -> bytes:
    """The element bytes of a Python number in dtype, little endian.

    Floats are rounded to nearest even and overflow to infinity; a float given to an integer type is truncated.
    Raises OverflowError for an integer out of range and DTypeError for a complex number given to a real type or a
    type without arithmetic.
    """
    if dtype in STORAGE_ONLY:
        raise DTypeError(f"a number cannot be stored as {dtype}: it is a storage type; write its bits as uint8 instead")
    if dtype in promotion.COMPLEX:
        number = complex(value)
        return _pack(number.real, _FORMATS[dtype.name]) + _pack(number.imag, _FORMATS[dtype.name])
    if isinstance(value, complex):
        raise DTypeError(f"the complex number {value} cannot be stored as {dtype}; use its .real part")
    if dtype is bool_:
        return _pack(bool(value), "<?")
    if promotion.is_integer(dtype):
        integer = int(value)
        promotion.check_fits(integer, dtype)
        return struct.pack(_FORMATS[dtype.name], integer)
    if dtype is bfloat16:
        return _bfloat16_bits(float(value)).to_bytes(2, "little")
    return _pack(float(value), _FORMATS[dtype.name])


def decode(data: bytes, dtype: DataType) -> Any:
    """The Python number of one element."""
    if dtype in STORAGE_ONLY:
        return _small(data[0], dtype)
    if dtype == bfloat16:
        return struct.unpack("<f", b"\0\0" + data)[0]
    if dtype in promotion.COMPLEX:
        half = len(data) // 2
        return complex(*(struct.unpack(_FORMATS[dtype.name], part)[0] for part in (data[:half], data[half:])))
    return struct.unpack(_FORMATS[dtype.name], data)[0]


def _pack(value: float, form: str) -> bytes:
    try:
        return struct.pack(form, value)
    except OverflowError:  # struct refuses what rounds past the largest float
        return struct.pack(form, math.copysign(math.inf, value))


def _bfloat16_bits(value: float) -> int:
    bits = int.from_bytes(_pack(value, "<f"), "little")
    if math.isnan(value):
        return bits >> 16 | 0x40
    near = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
    if near not in (value, 0.0) and math.isfinite(near) and not bits & 1:
        bits += 1 if abs(value) > abs(near) else -1  # odd: the second rounding sees on which side of a middle it is
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _small(code: int, dtype: DataType) -> int | float:
    """The number of a code of a storage type, as ops/storage.py has it."""
    if dtype == int4:
        return ((code & 15) ^ 8) - 8
    exponent_bits, mantissa_bits = {"float8_e4m3": (4, 3), "float8_e5m2": (5, 2), "float4_e2m1": (2, 1)}[dtype.name]
    width = exponent_bits + mantissa_bits
    exponent, mantissa = code >> mantissa_bits & (1 << exponent_bits) - 1, code & (1 << mantissa_bits) - 1
    sign = -1.0 if code >> width & 1 else 1.0
    if dtype == float8_e5m2 and exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if dtype == float8_e4m3 and code & 127 == 127:
        return math.nan
    whole = mantissa + (1 << mantissa_bits if exponent else 0)
    return sign * math.ldexp(whole, max(exponent, 1) - (1 << exponent_bits - 1) + 1 - mantissa_bits)
