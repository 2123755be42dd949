"""Comparisons, tests, and operations on truth values and bits. out= and errors as in ops/elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.array import promotion
from pygpukit.core.dtypes import bool_
from pygpukit.ops.elementwise import as_type, binary, binary_function, operations, unary, unary_function
from pygpukit.ops.elementwise.keywords import ufunc
from pygpukit.ops.operands import Deferred, check_input, check_operand, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

__all__ = [
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "equal", "greater", "greater_equal", "invert", "isfinite", "isinf", "isnan", "left_shift", "less",
    "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal", "right_shift", "signbit",
]  # fmt: skip

equal = binary_function(operations.EQ, "a == b, as bool.")
not_equal = binary_function(operations.NE, "a != b, as bool; true of nan and nan.")
less = binary_function(operations.LT, "a < b, as bool. Complex numbers are refused with DTypeError.")
less_equal = binary_function(operations.LE, "a <= b, as bool. Complex numbers are refused with DTypeError.")


@ufunc(2)
def greater(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """a > b, as bool. Complex numbers are refused with DTypeError."""
    return binary(operations.LT, b, a, out)


@ufunc(2)
def greater_equal(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """a >= b, as bool. Complex numbers are refused with DTypeError."""
    return binary(operations.LE, b, a, out)


bitwise_and = binary_function(operations.BITWISE_AND, "a & b of integers or bools.")
bitwise_or = binary_function(operations.BITWISE_OR, "a | b of integers or bools.")
bitwise_xor = binary_function(operations.BITWISE_XOR, "a ^ b of integers or bools.")
bitwise_left_shift = binary_function(
    operations.SHIFT_LEFT, "a << b of integers; 0 where b is negative or not below the number of bits."
)
bitwise_right_shift = binary_function(
    operations.SHIFT_RIGHT,
    "a >> b of integers, copies of the sign coming in; all bits are shifted out where b is negative or too large.",
)
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift


@ufunc(1)
def bitwise_invert(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """~a: every bit of integers the other way round, and every truth value."""
    array = check_input(a, "bitwise_invert")
    ones = True if array.dtype is bool_ else 2 ** (8 * array.dtype.itemsize) - 1
    if array.dtype in promotion.SIGNED:
        ones = -1
    elif array.dtype.name not in operations.BITS:
        operations.compute_dtype(operations.BITWISE_XOR, array.dtype)
    return binary(operations.BITWISE_XOR, array, ones, out)


bitwise_not = invert = bitwise_invert


@ufunc(2)
def logical_and(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """True where neither a nor b is zero."""
    return binary(operations.BITWISE_AND, _truth(a, "logical_and"), _truth(b, "logical_and"), out)


@ufunc(2)
def logical_or(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """True where a or b is not zero."""
    return binary(operations.BITWISE_OR, _truth(a, "logical_or"), _truth(b, "logical_or"), out)


@ufunc(2)
def logical_xor(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """True where one of a and b is zero and the other is not."""
    return binary(operations.BITWISE_XOR, _truth(a, "logical_xor"), _truth(b, "logical_xor"), out)


@ufunc(1)
def logical_not(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """True where a is zero."""
    return binary(operations.EQ, check_input(a, "logical_not"), False, out)


@ufunc(1)
def isnan(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """True of NaN; of a complex number with a NaN part."""
    return _test(operations.ISNAN, a, out)


@ufunc(1)
def isinf(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """True of infinities; of a complex number with an infinite part."""
    return _test(operations.ISINF, a, out)


@ufunc(1)
def isfinite(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """True of neither NaN nor infinite; of complex numbers both parts."""
    return _test(operations.ISFINITE, a, out)


signbit = unary_function(operations.SIGNBIT, "True where the sign bit is set: of negative numbers, -0.0 and some NaNs.")


def _truth(value: Any, what: str) -> Any:
    if isinstance(value, Deferred):
        return as_type(check_input(value, what), bool_)
    operand = check_operand(value, what)
    return as_type(operand, bool_) if is_array(operand) else bool(operand)


def _test(op: operations.Op, a: GPUArray, out: GPUArray | None) -> GPUArray:
    """The test itself of floats and complex numbers; of others its answer for every number."""
    array = check_input(a, op.name)
    if promotion.is_inexact(array.dtype) or array.dtype.name not in operations.ANY:
        return unary(op, array, out)
    return binary(operations.EQ if op is operations.ISFINITE else operations.NE, array, array, out)
