"""Comparisons whose operands have no common type that holds both: they are answered exactly, as NumPy 2 does.

uint64 beside signed integers: the sign decides first, then the bits as uint64. A Python int outside an integer array's
range: every element is on the same side of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array import promotion
from pygpukit.core.dtypes import DataType, int64, uint64
from pygpukit.ops.elementwise import operations

if TYPE_CHECKING:
    from collections.abc import Callable

    Binary = Callable[[operations.Op, Any, Any, Any], Any]

COMPARISONS = frozenset({operations.EQ, operations.NE, operations.LT, operations.LE})


def apart(op: operations.Op, a: Any, b: Any) -> bool:
    """True where op compares operands that no common type holds. Operands have a dtype or are numbers."""
    if op not in COMPARISONS:
        return False
    first, second = getattr(a, "dtype", None), getattr(b, "dtype", None)
    if first is None or second is None:
        number, dtype = (a, second) if first is None else (b, first)
        return dtype is not None and _beside(number, dtype) is not None
    return (first is uint64 and second in promotion.SIGNED) or (second is uint64 and first in promotion.SIGNED)


def compare(
    op: operations.Op, a: Any, b: Any, out: Any, binary: Binary, convert: Callable[[Any, DataType], Any]
) -> Any:
    """op(a, b) of operands that are apart. binary, convert: how operations and conversions are made or recorded."""
    if not hasattr(a, "dtype") or not hasattr(b, "dtype"):
        left = hasattr(a, "dtype")  # the array is on the left
        array, number = (a, b) if left else (b, a)
        above = bool(_beside(number, array.dtype))
        true = op is operations.NE or (op not in (operations.EQ, operations.NE) and above is left)
        return binary(operations.EQ if true else operations.NE, array, array, out)
    signed = b if a.dtype is uint64 else a
    bits = convert(signed, uint64)
    plain = binary(op, *((a, bits) if a.dtype is uint64 else (bits, b)), None)
    below = op is operations.NE or (op is not operations.EQ and signed is a)  # what a negative number answers
    if below:
        return binary(operations.BITWISE_OR, plain, binary(operations.LT, signed, 0, None), out)
    return binary(operations.BITWISE_AND, plain, binary(operations.LE, 0, signed, None), out)


def _beside(number: Any, dtype: DataType) -> bool | None:
    """True for a Python int above the range of an integer (or bool) type, False for one below it, else None."""
    if not isinstance(number, int) or isinstance(number, bool) or promotion.is_inexact(dtype):
        return None
    low, high = promotion.limits(dtype if promotion.is_integer(dtype) else int64)
    return None if low <= number <= high else number > high
