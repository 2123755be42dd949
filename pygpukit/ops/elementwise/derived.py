"""NumPy's element-wise functions that are a few of the others: each computes in several passes, and can be fused.

Types, out= and errors as in ops/elementwise; integers of functions of real numbers become floats as in ops/math.
"""

from __future__ import annotations

import builtins
import sys
from math import e as _E
from math import log2, pi
from typing import TYPE_CHECKING, Any

from pygpukit.array import layout, promotion
from pygpukit.core.dtypes import DataType, complex128, float16, float32, float64
from pygpukit.core.errors import DTypeError
from pygpukit.ops import elementwise
from pygpukit.ops.elementwise import as_type, binary, deliver, logic, math, operations
from pygpukit.ops.elementwise.keywords import ufunc
from pygpukit.ops.operands import check_array, check_input, check_operand, is_array

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.ops.operands import Operand

__all__ = [
    "around",
    "array_equal",
    "array_equiv",
    "cbrt",
    "deg2rad",
    "degrees",
    "divmod",
    "fabs",
    "fix",
    "float_power",
    "fmod",
    "heaviside",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
    "logaddexp2",
    "modf",
    "nan_to_num",
    "rad2deg",
    "radians",
    "rint",
    "sinc",
]

_AS_FLOAT = operations.SIGNBIT  # a function of any real number: its types are those floats
around = math.round


@ufunc(1)
def rint(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """The nearest whole number, halves to even; integers become floats."""
    return math.round(_floating(a, "rint"), out=out)


@ufunc(1)
def fix(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """a rounded towards zero, as trunc()."""
    return math.trunc(a, out=out)


@ufunc(1)
def fabs(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """The magnitude, as a float. Raises DTypeError of complex numbers."""
    return elementwise.abs(_real(a, "fabs"), out=out)


@ufunc(1)
def degrees(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """Radians in degrees."""
    return binary(operations.MUL, _real(a, "degrees"), 180 / pi, out)


@ufunc(1)
def radians(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """Degrees in radians."""
    return binary(operations.MUL, _real(a, "radians"), pi / 180, out)


rad2deg, deg2rad = degrees, radians


@ufunc(1)
def cbrt(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """The cube root, of negative numbers, too. Computed in float64."""
    a = _real(a, "cbrt")
    wide = as_type(a, float64)
    size = elementwise.abs(wide)
    root = elementwise.pow(size, 1 / 3)
    step = (root * root * root - size) / (3 * root * root)  # Newton's; 0 / 0 of zero, and of infinity
    root = elementwise.where(logic.isfinite(step), root - step, root)
    root = math.copysign(root, wide)
    return deliver(as_type(elementwise.where(logic.isnan(wide), wide, root), a.dtype), out)


@ufunc(2)
def fmod(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """The rest of a / b with a's sign, as C's fmod and %; integers divided by 0 give 0. bool computes as int8."""
    rest = elementwise.remainder(a, b)
    if rest.dtype in promotion.UNSIGNED:
        return deliver(rest, out)
    if promotion.is_integer(rest.dtype):  # the rest has b's sign: one b less where a has another
        other = logic.logical_and(logic.not_equal(rest, 0), logic.not_equal(_below_zero(a), _below_zero(b)))
        return deliver(as_type(elementwise.where(other, rest - b, rest), rest.dtype), out)
    a, b = (as_type(x, rest.dtype) if is_array(x) else x for x in (a, b))
    return math.copysign(elementwise.remainder(_size(a), _size(b)), a, out=out)


def divmod(a: Operand, b: Operand) -> tuple[GPUArray, GPUArray]:
    """(a // b, a % b)."""
    return elementwise.floor_divide(a, b), elementwise.remainder(a, b)


def modf(a: GPUArray) -> tuple[GPUArray, GPUArray]:
    """(fractional part, whole part), both with a's sign. Of infinity the fraction is 0."""
    a = _real(a, "modf")
    whole = math.trunc(a)
    rest = elementwise.where(logic.isinf(a), 0.0, a - whole)
    return math.copysign(rest, a), whole


@ufunc(2)
def float_power(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """a to the power b in float64, or complex128: integers take negative powers, too."""
    _check_shapes("float_power", a, b)
    a, b = (_wide(x, "float_power") for x in (a, b))
    return elementwise.pow(a, b, out=out)


@ufunc(2)
def heaviside(a: GPUArray, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """0 where a is negative, 1 where it is positive, b where it is zero, NaN of NaN."""
    _check_shapes("heaviside", a, b)
    a = _real(a, "heaviside")
    b = _real(b, "heaviside") if hasattr(b, "dtype") else b
    step = elementwise.where(logic.isnan(a), a, as_type(logic.greater(a, 0), a.dtype))
    return deliver(elementwise.where(logic.equal(a, 0), b, step), out)


@ufunc(2)
def logaddexp2(a: Operand, b: Operand, *, out: GPUArray | None = None) -> GPUArray:
    """log2(2**a + 2**b) without overflow."""
    a, b = (_real(x, "logaddexp2") if hasattr(x, "dtype") else x for x in (a, b))
    distance = elementwise.abs(elementwise.sub(a, b))
    above = elementwise.mul(math.log1p(math.exp2(elementwise.neg(distance))), log2(_E))
    same = logic.equal(a, b)  # infinities among them, which have no distance
    return elementwise.add(elementwise.maximum(a, b), elementwise.where(same, 1.0, above), out=out)


@ufunc(1)
def sinc(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """sin(pi a) / (pi a), 1 of 0."""
    a = check_input(a, "sinc")
    a = a if promotion.is_inexact(a.dtype) else as_type(a, float64)
    angle = elementwise.mul(a, pi)
    return deliver(elementwise.where(logic.equal(a, 0), 1.0, elementwise.div(math.sin(angle), angle)), out)


def nan_to_num(
    x: GPUArray, copy: bool = True, nan: Operand = 0.0, posinf: Operand | None = None, neginf: Operand | None = None
) -> GPUArray:
    """x with numbers for what is none: nan for NaN, the type's largest and smallest for infinities unless given.

    Complex numbers by parts; integers are copied. copy: False writes them to x, and returns it.
    """
    x = check_array(x, "nan_to_num")
    target = x if not copy else elementwise.copied(x, None)
    if not promotion.is_inexact(x.dtype):
        return target
    for part in (math.real(target), math.imag(target)) if x.dtype in promotion.COMPLEX else (target,):
        low, high = _extremes(part.dtype)
        clean = elementwise.where(logic.isnan(part), nan, part)
        clean = elementwise.where(isposinf(part), high if posinf is None else posinf, clean)
        clean = elementwise.where(isneginf(part), low if neginf is None else neginf, clean)
        part[...] = clean
    return target


@ufunc(1)
def isposinf(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """True of positive infinity. Complex numbers are refused with DTypeError."""
    return logic.equal(_real(a, "isposinf"), float("inf"), out=out)


@ufunc(1)
def isneginf(a: GPUArray, *, out: GPUArray | None = None) -> GPUArray:
    """True of negative infinity. Complex numbers are refused with DTypeError."""
    return logic.equal(_real(a, "isneginf"), -float("inf"), out=out)


def isreal(x: GPUArray) -> GPUArray:
    """True where the imaginary part is zero."""
    return logic.equal(math.imag(check_array(x, "isreal")), 0)


def iscomplex(x: GPUArray) -> GPUArray:
    """True where the imaginary part is not zero."""
    return logic.not_equal(math.imag(check_array(x, "iscomplex")), 0)


def array_equal(a1: GPUArray, a2: GPUArray, equal_nan: bool = False) -> bool:
    """True when both have one shape and equal elements; with equal_nan NaNs count as equal. Waits for the answer."""
    a1, a2 = check_array(a1, "array_equal"), check_array(a2, "array_equal")
    return a1.shape == a2.shape and _all_equal(a1, a2, equal_nan)


def array_equiv(a1: GPUArray, a2: GPUArray) -> bool:
    """True when one broadcasts to the other's shape and their elements are equal. Waits for the answer."""
    a1, a2 = check_array(a1, "array_equiv"), check_array(a2, "array_equiv")
    short, long = sorted((a1.shape, a2.shape), key=len)
    fits = builtins.all(m in (1, n) or n == 1 for m, n in zip(reversed(short), reversed(long), strict=False))
    return fits and _all_equal(a1, a2, False)


def _all_equal(a: GPUArray, b: GPUArray, equal_nan: bool) -> bool:
    from pygpukit.ops.reduce import all as every

    same = logic.equal(a, b)
    if equal_nan and promotion.is_inexact(a.dtype) and promotion.is_inexact(b.dtype):
        same = logic.logical_or(same, logic.logical_and(logic.isnan(a), logic.isnan(b)))
    return bool(every(same))


def _extremes(dtype: DataType) -> tuple[float, float]:
    largest = {float16: 65504.0, float32: (2 - 2**-23) * 2.0**127, float64: sys.float_info.max}
    high = largest.get(dtype, (2 - 2**-7) * 2.0**127)  # else bfloat16
    return -high, high


def _check_shapes(what: str, a: Any, b: Any) -> None:
    """Before anything is converted, which is a launch."""
    if is_array(a) and is_array(b):
        layout.broadcast_shapes(a.shape, b.shape, what)


def _below_zero(value: Any) -> Any:
    return logic.less(value, 0) if hasattr(value, "dtype") else value < 0


def _size(value: Any) -> Any:
    return elementwise.abs(value) if hasattr(value, "dtype") else abs(value)


def _floating(a: Any, what: str) -> GPUArray:
    """a, of floats and complex numbers; others in the smallest float that holds them."""
    a = check_input(a, what)
    return as_type(a, operations.compute_dtype(_AS_FLOAT, a.dtype)) if a.dtype not in promotion.COMPLEX else a


def _real(a: Any, what: str) -> GPUArray:
    """_floating() of what is not complex. Raises DTypeError."""
    a = check_input(a, what)
    if a.dtype in promotion.COMPLEX:
        raise DTypeError(f"{what}: not defined for {a.dtype}; apply it to .real and .imag")
    return _floating(a, what)


def _wide(value: Any, what: str) -> Any:
    value = value if not hasattr(value, "dtype") else check_operand(value, what)
    if not is_array(value):
        return complex(value) if isinstance(value, complex) else float(value)
    return as_type(value, complex128 if value.dtype in promotion.COMPLEX else float64)
