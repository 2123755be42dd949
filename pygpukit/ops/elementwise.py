"""Elementwise arithmetic: add, sub, mul, div, neg, their in-place forms, and comparisons.

Shapes broadcast and types promote as in NumPy 2: a Python number only contributes its kind, integers wrap, and division
is true division, so integers divide to float64. All work is asynchronous on the current stream and gives the same bits
on every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.core import layout, promotion
from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import DTypeError
from pygpukit.ops import copying, pointwise
from pygpukit.ops.operands import check_array, check_devices, check_operand, check_out, is_array, overlaps

if TYPE_CHECKING:
    from pygpukit.core.array import GPUArray
    from pygpukit.ops.operands import Operand
    from pygpukit.ops.pointwise import Op


def add(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """a + b; at least one is a GPUArray. bool adds as "or".

    out: written and returned instead of a new array; its shape must be the result's and its type able to hold it.
    Raises ShapeError, DTypeError, DeviceMismatchError, OverflowError (an int too large for an integer array).
    """
    return binary(pointwise.ADD, a, b, out)


def sub(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """a - b. Arguments and errors as add(); bool is refused with DTypeError."""
    return binary(pointwise.SUB, a, b, out)


def mul(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """a * b. Arguments and errors as add(); bool multiplies as "and"."""
    return binary(pointwise.MUL, a, b, out)


def div(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """a / b, true division: integers and bools give float64, x / 0 gives inf or nan. Arguments and errors as add()."""
    return binary(pointwise.DIV, a, b, out)


def neg(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """-a; unsigned integers wrap. bool is refused with DTypeError. out and errors as add()."""
    a = check_array(a, "neg")
    check_devices("neg", a)
    pointwise.compute_dtype(pointwise.NEG, a.dtype)
    target = out if out is None else check_out(out, a.shape, a.dtype, "neg")
    if target is None or target.dtype is not a.dtype or overlaps(a, target):
        target = native.empty(a.shape, a.dtype)
    pointwise.unary(pointwise.NEG, a, target)
    return _deliver(target, out)


def add_inplace(a: GPUArray, b: Operand) -> None:
    """a += b without a new array. Errors as add()."""
    add(a, b, out=check_array(a, "add_inplace"))


def mul_inplace(a: GPUArray, b: Operand) -> None:
    """a *= b without a new array. Errors as add()."""
    mul(a, b, out=check_array(a, "mul_inplace"))


def binary(op: Op, a: Any, b: Any, out: GPUArray | None) -> GPUArray:
    """op(a, b) with broadcasting and promotion: the common path of all binary operations."""
    a, b = check_operand(a, op.name), check_operand(b, op.name)
    if is_array(a) and is_array(b):
        check_devices(op.name, a, b)
        same = a.dtype_code == b.dtype_code
        dtype = pointwise.compute_dtype(op, a.dtype if same else promotion.promote(a.dtype, b.dtype))
        shape = layout.broadcast_shapes(a.shape, b.shape, op.name)
        a, b = _as_type(a, dtype), _as_type(b, dtype)
    elif is_array(a) or is_array(b):
        array, number = (a, b) if is_array(a) else (b, a)
        check_devices(op.name, array)
        dtype = pointwise.compute_dtype(op, promotion.with_scalar(array.dtype, number))
        shape = array.shape
        array = _as_type(array, dtype)
        a, b = (array, number) if is_array(a) else (number, array)
    else:
        raise DTypeError(f"{op.name}: one operand must be a GPUArray; make one with gp.asarray(...)")
    result = op.result_dtype(dtype)
    target = None
    if out is not None and check_out(out, shape, result, op.name).dtype is result:
        target = None if any(is_array(x) and overlaps(x, out) for x in (a, b)) else out
    if target is None:
        target = native.empty(shape, result)
    pointwise.binary(op, dtype, a, b, target)
    return _deliver(target, out)


def _as_type(array: GPUArray, dtype: DataType) -> GPUArray:
    return array if array.dtype is dtype else copying.astype(array, dtype)


def _deliver(result: GPUArray, out: GPUArray | None) -> GPUArray:
    if out is None or result is out:
        return result
    copying.copy_to(result, out)
    return out
