"""The storage types in NumPy: what bits stand for, and numbers as bits; kernels/include/storage.cuh does the same.

fp8 and fp4 follow the OCP specifications (8-bit floating point 1.0, microscaling formats 1.0): numbers are rounded to
nearest even. What is too large becomes NaN in float8_e4m3, which has no infinity, infinity in float8_e5m2, and the
largest number, 6, in float4_e2m1, which has neither and also gives 6 for NaN. int4: integers wrap, floats are truncated
and saturate, NaN becomes 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from pygpukit.core.dtypes import DataType, int4

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class _Format:
    """Bits of exponent and mantissa; codes without the sign: the largest number, what overflow and NaN become."""

    exponent: int
    mantissa: int
    largest: int
    overflow: int
    nan: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def sign(self) -> int:
        """The sign bit's position."""
        return self.exponent + self.mantissa


_FORMATS = {
    "float8_e4m3": _Format(4, 3, 0x7E, 0x7F, 0x7F),
    "float8_e5m2": _Format(5, 2, 0x7B, 0x7C, 0x7E),
    "float4_e2m1": _Format(2, 1, 0x7, 0x7, 0x7),
}


def decoded(bits: Array, dtype: DataType) -> Array:
    """The numbers: float32, int8 of int4. Of types of 4 bits the low ones count."""
    if dtype == int4:
        return ((bits & 15) ^ 8).astype(np.int8) - 8
    return _numbers(dtype.name)[bits]


@cache
def _numbers(name: str) -> Array:
    """The number of each of the 256 codes."""
    form, codes = _FORMATS[name], np.arange(256)
    code = codes & ((1 << form.sign) - 1)
    exponent, mantissa = code >> form.mantissa, code & ((1 << form.mantissa) - 1)
    whole = mantissa + np.where(exponent > 0, 1 << form.mantissa, 0)
    values = np.ldexp(whole.astype(np.float32), np.maximum(exponent, 1) - form.bias - form.mantissa)
    values[code > form.largest] = np.nan
    if form.overflow not in (form.largest, form.nan):
        values[code == form.overflow] = np.inf
    return np.copysign(values, np.where(codes >> form.sign & 1, -1, 1)).astype(np.float32)


def encoded(numbers: Any, dtype: DataType) -> Array:
    """The bits of real numbers, rounded once: uint8, int8 for int4."""
    if dtype == int4:
        return _int4(np.asarray(numbers))
    form, x = _FORMATS[dtype.name], np.asarray(numbers).astype(np.float64)
    special = ~np.isfinite(x)
    size = np.abs(np.where(special, 0, x))
    # Every number below 2^(1 - bias) has the exponent of the smallest normal one: its mantissa has no leading 1.
    exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, 1 - form.bias), 1 - form.bias)
    steps = np.rint(np.ldexp(size, form.mantissa - exponent)).astype(np.int64)
    code = ((exponent.astype(np.int64) + form.bias - 1) << form.mantissa) + steps
    code = np.where((code > form.largest) | special, form.overflow, code)
    sign = np.where(np.signbit(x), 1 << form.sign, 0)
    if form.nan == form.largest:
        sign = np.where(np.isnan(x), 0, sign)
    return (np.where(np.isnan(x), form.nan, code) | sign).astype(np.uint8)


def _int4(numbers: Array) -> Array:
    if numbers.dtype.kind == "f":
        numbers = np.clip(np.nan_to_num(np.trunc(numbers.astype(np.float64)), nan=0.0), -8, 7)
    return (((numbers.astype(np.int64) & 15) ^ 8) - 8).astype(np.int8)
