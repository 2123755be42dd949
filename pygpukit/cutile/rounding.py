"""Numbers as elements of a type of tiles: rounded to it, and as the bits that memory holds."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from pygpukit.cutile.dtypes import DType
from pygpukit.ops import storage
from pygpukit.ops.host import bfloat16_bits

Array: TypeAlias = "np.ndarray[Any, Any]"


def rounded(numbers: Any, dtype: DType) -> Array:
    """The numbers as the type has them, to nearest even, in the type that the interpreter computes in."""
    numbers = np.asarray(numbers)
    with np.errstate(all="ignore"):
        if dtype.kind == "b":
            return numbers != 0
        if dtype.category == "i" and numbers.dtype.kind == "f":
            return _truncated(numbers, dtype)
        if dtype.name in ("float16", "float32", "float64") or dtype.category == "i":
            return numbers.astype(dtype.host)
        if dtype.name == "tfloat32":
            return _tfloat32(numbers.astype(np.float32))
        return decoded(encoded(numbers, dtype), dtype)


def encoded(numbers: Array, dtype: DType) -> Array:
    """The elements as arrays keep them: numbers, or bits of a type that NumPy lacks."""
    if dtype.name == "bfloat16":
        return bfloat16_bits(numbers).astype(np.uint16)
    if dtype.kind == "r":
        return np.asarray(storage.encoded(numbers, dtype.array_dtype))
    return numbers.astype(dtype.host, copy=False)


def decoded(elements: Array, dtype: DType) -> Array:
    """The numbers that elements of an array stand for."""
    if dtype.name == "bfloat16":
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype.kind == "r":
        return np.asarray(storage.decoded(elements, dtype.array_dtype))
    return elements.astype(dtype.host, copy=False)


def poison(dtype: DType) -> Any:
    """The number in the place of an element that nothing determines: NaN, 0x5a5a... of integers."""
    if dtype.category == "f":
        return np.nan
    return True if dtype.kind == "b" else int("5a" * (dtype.bitwidth // 8), 16)


def _truncated(numbers: Array, dtype: DType) -> Array:
    """Floats towards zero; what is too large becomes the nearest integer that there is, NaN becomes 0."""
    limits = np.iinfo(dtype.host)
    whole = np.trunc(numbers.astype(np.float64))
    inside = (whole >= float(limits.min)) & (whole < float(limits.max))
    result = np.where(inside, whole, 0.0).astype(dtype.host)
    result = np.where(whole >= float(limits.max), limits.max, result)
    return np.where(whole < float(limits.min), limits.min, result).astype(dtype.host)


def _tfloat32(numbers: Array) -> Array:
    """Float32 with a mantissa of 10 bits."""
    bits = numbers.view(np.uint32)
    even = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(numbers), even.view(np.float32), numbers)
