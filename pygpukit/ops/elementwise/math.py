"""Mathematical functions of each element.

Integers and bools compute in the smallest float that holds them, as in NumPy: 8 bits in float16, 16 bits in float32,
others in float64. float16 and bfloat16 compute in float32 and round once. Functions of complex numbers have the branch
cuts of C and NumPy. out= and errors as in ops/elementwise; outside of its domain a function gives nan, no error.
"""

from __future__ import annotations

import builtins
from math import pi
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.core.dtypes import float16, float32, float64
from pygpukit.ops import copying
from pygpukit.ops.elementwise import (
    as_type,
    binary,
    binary_function,
    copied,
    deliver,
    operations,
    unary,
    unary_function,
)
from pygpukit.ops.elementwise.keywords import ufunc
from pygpukit.ops.operands import Deferred, check_array, check_devices, check_input, check_out

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

__all__ = [
    "acos",
    "acosh",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fmax",
    "fmin",
    "hypot",
    "imag",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "nextafter",
    "real",
    "reciprocal",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]  # fmt: skip

_MATH = operations.MATH

exp = unary_function(_MATH["exp"], "e to the power a.")
exp2 = unary_function(_MATH["exp2"], "2 to the power a.")
expm1 = unary_function(_MATH["expm1"], "exp(a) - 1, exact also for small a.")
log = unary_function(_MATH["log"], "The natural logarithm.")
log2 = unary_function(_MATH["log2"], "The logarithm to base 2.")
log10 = unary_function(_MATH["log10"], "The logarithm to base 10.")
log1p = unary_function(_MATH["log1p"], "log(1 + a), exact also for small a.")
sqrt = unary_function(_MATH["sqrt"], "The square root.")
rsqrt = unary_function(operations.RSQRT, "1 / sqrt(a).")
sin = unary_function(_MATH["sin"], "The sine of radians.")
cos = unary_function(_MATH["cos"], "The cosine of radians.")
tan = unary_function(_MATH["tan"], "The tangent of radians.")
asin = unary_function(_MATH["asin"], "The inverse sine, in radians.")
acos = unary_function(_MATH["acos"], "The inverse cosine, in radians.")
atan = unary_function(_MATH["atan"], "The inverse tangent, in radians.")
sinh = unary_function(_MATH["sinh"], "The hyperbolic sine.")
cosh = unary_function(_MATH["cosh"], "The hyperbolic cosine.")
tanh = unary_function(_MATH["tanh"], "The hyperbolic tangent.")
asinh = unary_function(_MATH["asinh"], "The inverse hyperbolic sine.")
acosh = unary_function(_MATH["acosh"], "The inverse hyperbolic cosine.")
atanh = unary_function(_MATH["atanh"], "The inverse hyperbolic tangent.")
erf = unary_function(operations.ERF, "The error function.")
sign = unary_function(operations.SIGN, "-1, 0 or 1 by the sign, nan of nan; of complex numbers a / |a|.")

arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh

atan2 = binary_function(operations.ATAN2, "The angle of the point (b, a) in radians, in its quadrant.")
hypot = binary_function(operations.HYPOT, "sqrt(a**2 + b**2) without overflow.")
copysign = binary_function(operations.COPYSIGN, "|a| with b's sign.")
nextafter = binary_function(operations.NEXTAFTER, "The next number of the type after a, towards b.")
logaddexp = binary_function(operations.LOGADDEXP, "log(exp(a) + exp(b)) without overflow.")
arctan2 = atan2


@ufunc(1)
def floor(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """The largest whole number not above a, in a's type; integers are copied."""
    return _rounded(operations.FLOOR, a, out)


@ufunc(1)
def ceil(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """The smallest whole number not below a, in a's type; integers are copied."""
    return _rounded(operations.CEIL, a, out)


@ufunc(1)
def trunc(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """a rounded towards zero, in a's type; integers are copied."""
    return _rounded(operations.TRUNC, a, out)


def round(a: GPUArray, decimals: int = 0, *, out: GPUArray | None = None) -> GPUArray:
    """a rounded to so many decimals (negative: to tens, hundreds), halves to even, in a's type; complex by parts.

    As NumPy: the nearest whole number of a times a power of ten, divided again.
    """
    if decimals:
        return _at_decimals(check_input(a, "round"), decimals, out)
    if not isinstance(a, Deferred) and check_array(a, "round").dtype in promotion.COMPLEX:
        check_devices("round", a)
        target = native.empty(a.shape, a.dtype)
        for part in (real, imag):
            unary(operations.ROUND, part(a), part(target))
        return target if out is None else deliver(target, check_out(out, a.shape, a.dtype, "round"))
    return _rounded(operations.ROUND, a, out)


def _at_decimals(a: GPUArray, decimals: int, out: GPUArray | None) -> GPUArray:
    if not promotion.is_inexact(a.dtype):
        if decimals > 0:
            return copied(a, out)
        a, dtype = as_type(a, float64), a.dtype
        return deliver(as_type(_at_decimals(a, decimals, None), dtype), out)
    factor = 10.0 ** builtins.abs(decimals)
    first, then = (operations.MUL, operations.DIV) if decimals > 0 else (operations.DIV, operations.MUL)
    return binary(then, round(binary(first, a, factor, None)), factor, out)


@ufunc(1)
def reciprocal(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """1 / a, in a's type: of integers rounded towards zero, and 0 of 0. bool computes as int8."""
    array = check_input(a, "reciprocal")
    if promotion.is_inexact(array.dtype):
        return binary(operations.DIV, 1, array, out)
    return unary(operations.RECIPROCAL_OF_INTEGER, array, out)


def real(a: GPUArray) -> GPUArray:
    """A view of the real parts; of other types a itself."""
    return _part(a, 0)


def imag(a: GPUArray) -> GPUArray:
    """A view of the imaginary parts; of other types zeros that cannot be written."""
    a = check_array(a, "imag")
    if a.dtype in promotion.COMPLEX:
        return _part(a, 1)
    zero = native.empty((), a.dtype)
    copying.fill(zero, 0)
    return native.view(zero, a.shape, (0,) * a.ndim, zero.offset)  # one zero, seen everywhere: it cannot be written


def angle(z: GPUArray, deg: bool = False, *, out: GPUArray | None = None) -> GPUArray:
    """The angle of complex numbers, atan2(z.imag, z.real), from -pi to pi; deg: in degrees. Of others 0 or pi."""
    z = check_array(z, "angle")
    z = as_type(z, float64) if not promotion.is_inexact(z.dtype) else z
    radians = atan2(imag(z), real(z), out=out)
    return binary(operations.MUL, radians, 180 / pi, out) if deg else radians


@ufunc(2)
def fmax(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """The larger of a and b; a NaN loses to a number."""
    return binary(operations.FMAX if _has_nan(a, b) else operations.MAXIMUM, a, b, out)


@ufunc(2)
def fmin(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """The smaller of a and b; a NaN loses to a number."""
    return binary(operations.FMIN if _has_nan(a, b) else operations.MINIMUM, a, b, out)


def _has_nan(a: Any, b: Any) -> bool:
    """True where the operands' common type has a NaN."""
    return any(
        promotion.is_inexact(x.dtype) if hasattr(x, "dtype") else isinstance(x, (float, complex)) for x in (a, b)
    )


def _part(a: GPUArray, position: int) -> GPUArray:
    if check_array(a, "real").dtype not in promotion.COMPLEX:
        return a
    part = float32 if a.itemsize == 8 else float64
    return native.view(a, a.shape, a.strides, a.offset + position * part.itemsize, part)


def _rounded(op: operations.Op, a: GPUArray, out: GPUArray | None) -> GPUArray:
    dtype = check_input(a, op.name).dtype
    if op is operations.ROUND and dtype.name == "bool":
        return deliver(as_type(a, float16), out)  # NumPy's type of rint(bool)
    whole = promotion.is_integer(dtype) or dtype.name == "bool"
    return copied(a, out) if whole else unary(op, a, out)
