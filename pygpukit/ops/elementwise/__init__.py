"""Element-wise arithmetic, and the common path of every element-wise operation.

Shapes broadcast and types promote as in NumPy 2: a Python number only contributes its kind, integers wrap, and division
is true division, so integers divide to float64. All work is asynchronous on the current stream and gives the same bits
on every run. Every function takes out=: an array of the result's shape, of a type able to hold it, that is written and
returned instead of a new one; and, as NumPy's ufuncs, where=, dtype= and casting= (keywords.py). All raise ShapeError,
DTypeError, DeviceMismatchError, and OverflowError for a Python int that does not fit an integer array.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, overload

from pygpukit._core import native
from pygpukit.array import layout, promotion
from pygpukit.core import deferred
from pygpukit.core.backend import is_sim
from pygpukit.core.dtypes import DataType, int8, int64
from pygpukit.core.errors import DTypeError, negative_power
from pygpukit.ops import copying
from pygpukit.ops.elementwise import exact, keywords, operations, pointwise, quotients
from pygpukit.ops.elementwise.keywords import ufunc
from pygpukit.ops.elementwise.operations import Op, compute_dtype
from pygpukit.ops.operands import (
    Deferred,
    check_array,
    check_devices,
    check_input,
    check_operand,
    check_out,
    is_array,
    overlaps,
)

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike
    from pygpukit.ops.operands import Operand

__all__ = [
    "abs", "absolute", "add", "clamp", "clip", "conj", "conjugate", "div", "divide", "floor_divide", "maximum",
    "minimum", "mod", "mul", "multiply", "neg", "negative", "positive", "pow", "power", "remainder", "square", "sub",
    "subtract", "true_divide", "where",
]  # fmt: skip
LOW_LEVEL = ["add_inplace", "mul_inplace"]


class Unary(Protocol):
    """A public function of one array."""

    def __call__(
        self,
        a: GPUArray,
        out: GPUArray | None = None,
        *,
        where: Any = True,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
    ) -> GPUArray: ...


class Binary(Protocol):
    """A public function of two operands, at least one of which is an array."""

    def __call__(
        self,
        a: Operand,
        b: Operand,
        out: GPUArray | None = None,
        *,
        where: Any = True,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
    ) -> GPUArray: ...


def unary_function(op: Op, text: str) -> Unary:
    """The public function of a unary operation; text is its documentation."""

    def function(
        a: GPUArray,
        out: GPUArray | None = None,
        *,
        where: Any = True,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
    ) -> GPUArray:
        if where is True and dtype is None and casting == "same_kind":
            return unary(op, a, out)
        return keywords.call(op.name, partial(unary, op, out=None), (a,), out, where, dtype, casting)

    return _named(function, op, text)


def binary_function(op: Op, text: str) -> Binary:
    """The public function of a binary operation; text is its documentation."""

    def function(
        a: Operand,
        b: Operand,
        out: GPUArray | None = None,
        *,
        where: Any = True,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
    ) -> GPUArray:
        if where is True and dtype is None and casting == "same_kind":
            return binary(op, a, b, out)
        return keywords.call(op.name, partial(binary, op, out=None), (a, b), out, where, dtype, casting)

    return _named(function, op, text)


def _named(function: Any, op: Op, text: str) -> Any:
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = text
    return function


add = binary_function(operations.ADD, 'a + b. bool adds as "or".')
sub = binary_function(operations.SUB, "a - b. bool is refused with DTypeError.")
mul = binary_function(operations.MUL, 'a * b. bool multiplies as "and".')
div = binary_function(operations.DIV, "a / b, true division: integers and bools give float64, x / 0 gives inf or nan.")
neg = unary_function(operations.NEG, "-a; unsigned integers wrap. bool is refused with DTypeError.")
floor_divide = binary_function(
    operations.FLOOR_DIVIDE,
    "a / b rounded down, as Python's //. Integer division by 0 gives 0; bool computes as int8, as in NumPy.",
)
remainder = binary_function(
    operations.REMAINDER, "a - b * (a // b), with b's sign, as Python's %. Integer remainders by 0 are 0."
)
maximum = binary_function(operations.MAXIMUM, "The larger of a and b; NaN where either is NaN.")
minimum = binary_function(operations.MINIMUM, "The smaller of a and b; NaN where either is NaN.")
subtract, multiply, divide, negative, mod = sub, mul, div, neg, remainder
true_divide = div


def add_inplace(a: GPUArray, b: Operand) -> None:
    """a += b without a new array. Errors as add()."""
    add(a, b, out=check_array(a, "add_inplace"))


def mul_inplace(a: GPUArray, b: Operand) -> None:
    """a *= b without a new array. Errors as add()."""
    mul(a, b, out=check_array(a, "mul_inplace"))


@ufunc(2)
def power(a: Any, b: Any, *, out: GPUArray | None = None) -> GPUArray:
    """a to the power b. Integers wrap; bool computes as int8, as in NumPy.

    A negative exponent of integers raises ValueError, as in NumPy: at once of a Python int and on the simulated device,
    for an array on a CUDA one at the next wait (in a captured graph it gives the result rounded towards zero). To the
    power 2 is a product, exactly rounded, and
    to the power 0.5 a square root, as in NumPy.
    """
    if isinstance(a, Deferred):
        b = a.settle(b)
    if isinstance(b, int) and not isinstance(b, bool) and not isinstance(a, (bool, int, float, complex)):
        if b == 2 and a.dtype.name in operations.POWERS:
            whole = as_type(a, int64 if a.dtype.name == "bool" else a.dtype)
            return binary(operations.MUL, whole, whole, out)
        if b < 0 and not promotion.is_inexact(a.dtype):
            raise negative_power(b)
    if isinstance(b, float) and b == 0.5 and hasattr(a, "dtype") and promotion.is_inexact(a.dtype):
        return unary(operations.MATH["sqrt"], a, out)
    result = binary(operations.POWER, a, b, out)
    if is_array(b) and b.dtype in promotion.SIGNED and not promotion.is_inexact(result.dtype):
        _check_exponents(b)
    return result


def _check_exponents(b: GPUArray) -> None:
    """Reports a negative one among the exponents of integers."""
    if not b.size or native.is_capturing():
        return
    smallest = b.min()
    if is_sim():
        if (value := smallest.item()) < 0:
            raise negative_power(value)
        return
    deferred.expect_none(binary(operations.LT, smallest, 0, None), smallest)


@ufunc(1)
def square(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """a * a; bool computes as int8, as in NumPy."""
    array = check_input(a, "square")
    return power(as_type(array, int8) if array.dtype.name == "bool" else array, 2, out=out)


@ufunc(1)
def abs(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """|a|; of complex numbers the magnitude, a float. The least signed integer stays itself, as in NumPy."""
    return _or_copy(operations.ABS, a, out)


@ufunc(1)
def positive(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """A copy of a. bool is refused with DTypeError, as in NumPy."""
    array = check_input(a, "positive")
    if array.dtype.name not in operations.NUMBERS:
        raise DTypeError(f"positive: not defined for {array.dtype}; use .clone() for a copy")
    return _or_copy(operations.CONJ, a, out, "positive") if array.dtype not in promotion.COMPLEX else copied(a, out)


@ufunc(1)
def conj(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """The complex conjugate; of other types a copy, of bool as int8."""
    a = as_type(a, int8) if check_input(a, "conj").dtype.name == "bool" else a
    return _or_copy(operations.CONJ, a, out)


pow, absolute, conjugate = power, abs, conj


def clamp(
    a: GPUArray, min_val: Operand | None = None, max_val: Operand | None = None, *, out: GPUArray | None = None
) -> GPUArray:
    """min(max(a, min_val), max_val); bounds are arrays or numbers and broadcast, None is no bound; NaN stays NaN.

    Types promote over all three operands. ValueError without any bound.
    """
    if min_val is None and max_val is None:
        raise ValueError("clamp: give a lower bound, an upper bound or both")
    min_val, max_val = _in_range(a, min_val, max_val)
    if min_val is None and max_val is None:
        return copied(a, out)
    if max_val is None:
        return maximum(a, min_val, out=out)
    if min_val is None:
        return minimum(a, max_val, out=out)
    return ternary(operations.CLAMP, a, min_val, max_val, out)


def _in_range(a: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Bounds without those that no integer of a's type can reach, as NumPy leaves them out."""
    if hasattr(a, "dtype") and promotion.is_integer(a.dtype):
        smallest, largest = promotion.limits(a.dtype)
        low = None if isinstance(low, int) and low < smallest else low
        high = None if isinstance(high, int) and high > largest else high
    return low, high


def clip(
    a: GPUArray, min: Operand | None = None, max: Operand | None = None, *, out: GPUArray | None = None
) -> GPUArray:
    """clamp() under NumPy's name; without bounds a copy."""
    return copied(a, out) if min is None and max is None else clamp(a, min, max, out=out)


@overload
def where(cond: GPUArray) -> tuple[GPUArray, ...]: ...
@overload
def where(cond: GPUArray, a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray: ...
def where(cond: GPUArray, a: Operand | None = None, b: Operand | None = None, *, out: GPUArray | None = None) -> Any:
    """a where cond is true (not zero), else b. All broadcast; a and b are arrays or numbers and promote.

    cond: bool, or any type that compares with zero. Without a and b, nonzero(cond), which waits for a count.
    """
    if a is None and b is None and out is None:
        from pygpukit.ops.indexing.finding import nonzero

        return nonzero(cond)
    if a is None or b is None:
        raise TypeError("where: give both values, or neither for the places where cond is true")
    if isinstance(cond, (bool, int, float, complex, list, tuple)):
        from pygpukit.array.factory import asarray

        cond = asarray(cond)
    return ternary(operations.SELECT, cond, a, b, out)


# ---- the common path ----


def _prepared(op: Op, function: Callable[..., GPUArray]) -> native.Prepared:
    """The function with this operation, whose calls are prepared (ops/prepared.py)."""
    if op.prepared is None:
        object.__setattr__(op, "prepared", native.Prepared(partial(function, op)))
    assert op.prepared is not None
    return op.prepared


def unary(op: Op, a: Any, out: GPUArray | None) -> GPUArray:
    """op(a): checks, conversion to the type that op computes in, output."""
    if op.plain is not None and (result := op.plain(a, out)) is not None:
        return result
    return _prepared(op, _unary)(a, out)


def _unary(op: Op, a: Any, out: GPUArray | None) -> GPUArray:
    if isinstance(a, Deferred):
        return a.record(op, (a,), out)
    a = check_array(a, op.name)
    check_devices(op.name, a)
    dtype = compute_dtype(op, a.dtype)
    _check_out(op, out, a.shape, op.result_dtype(dtype))
    a = as_type(a, dtype)
    target = _target(out, a.shape, op.result_dtype(dtype), (a,))
    pointwise.unary(op, a, target)
    return deliver(target, out)


def binary(op: Op, a: Any, b: Any, out: GPUArray | None) -> GPUArray:
    """op(a, b) with broadcasting and promotion."""
    if op.plain is not None and (result := op.plain(a, b, out)) is not None:
        return result
    return _prepared(op, _binary)(a, b, out)


def _binary(op: Op, a: Any, b: Any, out: GPUArray | None) -> GPUArray:
    if isinstance(a, Deferred) or isinstance(b, Deferred):
        if exact.apart(op, a, b):
            return exact.compare(op, a, b, out, binary, as_type)
        return (a if isinstance(a, Deferred) else b).record(op, (a, b), out)
    a, b = check_operand(a, op.name), check_operand(b, op.name)
    if exact.apart(op, a, b):
        return exact.compare(op, a, b, out, binary, as_type)
    if is_array(a) and is_array(b):
        check_devices(op.name, a, b)
        same = a.dtype_code == b.dtype_code
        dtype = compute_dtype(op, a.dtype if same else promotion.promote(a.dtype, b.dtype))
        shape = layout.broadcast_shapes(a.shape, b.shape, op.name)
    elif is_array(a) or is_array(b):
        array, number = (a, b) if is_array(a) else (b, a)
        check_devices(op.name, array)
        dtype = compute_dtype(op, promotion.with_scalar(array.dtype, number))
        shape = array.shape
    else:
        raise DTypeError(f"{op.name}: one operand must be a GPUArray; make one with gp.asarray(...)")
    _check_out(op, out, shape, op.result_dtype(dtype))
    target = _target(out, shape, op.result_dtype(dtype), [x for x in (a, b) if is_array(x)])
    if op is operations.DIV and quotients.divides(a, b, target):
        quotients.divide(a, b, target)
        return deliver(target, out)
    a, b = (as_type(x, dtype) if is_array(x) else x for x in (a, b))
    pointwise.binary(op, dtype, a, b, target)
    return deliver(target, out)


def ternary(op: Op, c: Any, a: Any, b: Any, out: GPUArray | None) -> GPUArray:
    """where() and clamp(): c is an array, a and b are arrays or numbers."""
    return _prepared(op, _ternary)(c, a, b, out)


def _ternary(op: Op, c: Any, a: Any, b: Any, out: GPUArray | None) -> GPUArray:
    for operand in (c, a, b):
        if isinstance(operand, Deferred):
            return operand.record(op, (c, a, b), out)
    c, a, b = check_array(c, op.name), check_operand(a, op.name), check_operand(b, op.name)
    arrays = [x for x in (c, a, b) if is_array(x)]
    check_devices(op.name, *arrays)
    dtype = ternary_dtype(op, c, a, b)
    shape = c.shape
    for array in arrays[1:]:
        shape = layout.broadcast_shapes(shape, array.shape, op.name)
    _check_out(op, out, shape, dtype)
    c = as_type(c, dtype) if op is operations.CLAMP else _as_bool(c)
    a, b = (as_type(x, dtype) if is_array(x) else x for x in (a, b))
    target = _target(out, shape, dtype, [x for x in (c, a, b) if is_array(x)])
    pointwise.ternary(op, dtype, c, a, b, target)
    return deliver(target, out)


def ternary_dtype(op: Op, c: Any, a: Any, b: Any) -> DataType:
    """The type that where() and clamp() compute in; operands are numbers or have a dtype."""
    values = (c, a, b) if op is operations.CLAMP else (a, b)
    typed = [x.dtype for x in values if hasattr(x, "dtype")]
    numbers = [x for x in values if not hasattr(x, "dtype")]
    if not typed:  # two numbers: the types that Python's numbers have as arrays
        return promotion.promote(*(promotion.of_number(x) for x in numbers))
    dtype = typed[0]
    for other in typed[1:]:
        dtype = promotion.promote(dtype, other)
    for number in numbers:
        dtype = promotion.with_scalar(dtype, number)
    return compute_dtype(op, dtype)


def as_type(array: GPUArray, dtype: DataType) -> GPUArray:
    """The array itself when it has that type, else converted."""
    if array.dtype is dtype:
        return array
    return array.astype(dtype) if isinstance(array, Deferred) else copying.astype(array, dtype)


def copied(a: GPUArray, out: GPUArray | None) -> GPUArray:
    """A copy of a, in out when it is given."""
    return _or_copy(operations.CONJ, a, out, "copy", always=True)


def deliver(result: GPUArray, out: GPUArray | None) -> GPUArray:
    """The result, through out where it was not computed there."""
    if out is None or result is out:
        return result
    copying.copy_to(result, out)
    return out


def _or_copy(op: Op, a: Any, out: GPUArray | None, what: str = "", always: bool = False) -> GPUArray:
    """op(a) where op exists for a's type, a copy where it would change nothing."""
    a = check_input(a, what or op.name)
    if a.dtype.name in op.types and not always:
        return unary(op, a, out)
    if isinstance(a, Deferred):
        return a.record(operations.COPY, (a,), out)
    check_devices(what or op.name, a)
    if out is None:
        return copying.clone(a)
    return deliver(a, check_out(out, a.shape, a.dtype, what or op.name))


def _as_bool(array: GPUArray) -> GPUArray:
    return array if array.dtype.name == "bool" else copying.astype(array, operations.ANY["bool"])


def _target(out: GPUArray | None, shape: layout.Shape, dtype: DataType, inputs: Any) -> GPUArray:
    """Where to compute: in out, unless it has another type or shares memory with an input in another layout."""
    if out is not None and out.dtype is dtype and not any(overlaps(x, out) for x in inputs):
        return out
    return native.empty(shape, dtype)


def _check_out(op: Op, out: GPUArray | None, shape: layout.Shape, dtype: DataType) -> None:
    """Before anything is converted, which is a launch."""
    if out is not None:
        check_out(out, shape, dtype, op.name)
