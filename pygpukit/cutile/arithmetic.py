"""Element by element: operations on tiles and numbers by cuTile's rules of types, each result rounded to its type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from pygpukit.core.errors import DTypeError, GPUError, ShapeError
from pygpukit.cutile.block import finding, refused
from pygpukit.cutile.dtypes import DType, bool_, float32, int32, promoted
from pygpukit.cutile.rounding import rounded
from pygpukit.cutile.tile import Tile, dtype_argument, is_number, kind_of, of, plain_number

Array: TypeAlias = "np.ndarray[Any, Any]"

ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "cdiv": lambda x, y: np.floor_divide(x, y) + (np.mod(x, y) != 0),
    "mod": np.mod,
    "pow": np.power,
    "atan2": np.arctan2,
    "minimum": np.fmin,
    "maximum": np.fmax,
}
_NAN_WINS: dict[str, Callable[..., Any]] = {"minimum": np.minimum, "maximum": np.maximum}
_BITWISE: dict[str, Callable[..., Any]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_lshift": np.left_shift,
    "bitwise_rshift": np.right_shift,
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}
_FLOATS: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
}
_PLAIN_UNARY: dict[str, Callable[..., Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "abs": np.abs,
    "negative": np.negative,
    "bitwise_not": np.invert,
}


def binary(name: str, x: Any, y: Any, *, flush_to_zero: bool = False, propagate_nan: bool = False) -> Any:
    """An operation of two operands; of two numbers as Python has it. Raises DTypeError, ShapeError."""
    if is_number(x) and is_number(y):
        return _of_numbers(name, plain_number(x), plain_number(y))
    left, right = of(x, f"{name}: the left operand"), of(y, f"{name}: the right operand")
    if name in _BITWISE:
        dtype = _bitwise_type(name, x, y)
    else:
        dtype = common_type(name, x, y, division=name == "truediv")
    if name in ARITHMETIC:
        _check_arithmetic(name, left, right, dtype)
    if name == "pow" and left.dtype.kind == "f" and right.dtype.category == "i":
        dtype = left.dtype  # an integer exponent leaves the base's type
    a, b, unknown = together(name, (x, y), dtype)
    if flush_to_zero:
        a, b = flushed(a), flushed(b)
    if name in ("floordiv", "mod", "cdiv") and dtype.category == "i":
        _check_divisor(name, b, unknown)
    function = _NAN_WINS.get(name) if propagate_nan else None
    function = function or ARITHMETIC.get(name) or _BITWISE.get(name) or _COMPARISONS[name]
    with np.errstate(all="ignore"):
        result = function(a, b)
    if name in _COMPARISONS:
        return Tile(result, bool_, unknown)
    result = rounded(result, dtype)
    return Tile(flushed(result) if flush_to_zero else result, dtype, unknown)


def unary(name: str, x: Any, *, flush_to_zero: bool = False) -> Any:
    """An operation of one operand; of a number as Python has it. Raises DTypeError."""
    if is_number(x):
        return _of_number(name, plain_number(x))
    tile = of(x, name)
    if name in _FLOATS:
        tile = tile if tile.dtype.category == "f" else astype(tile, float32)
    elif name in ("floor", "ceil") and tile.dtype.category != "f":
        raise refused(DTypeError(f"{name} is for floats, not {tile.dtype}"))
    elif name == "bitwise_not" and tile.dtype.category == "f":
        raise refused(DTypeError(f"{name} is for integers and bools, not {tile.dtype}"))
    elif name == "negative" and tile.dtype == bool_:
        tile = astype(tile, int32)
    if tile.dtype.kind == "r":
        raise refused(DTypeError(f"{name}: {tile.dtype} does no arithmetic; convert it by .astype()"))
    data = flushed(tile.data) if flush_to_zero else tile.data
    with np.errstate(all="ignore"):
        result = rounded((_FLOATS.get(name) or _PLAIN_UNARY[name])(data), tile.dtype)
    return Tile(flushed(result) if flush_to_zero else result, tile.dtype, tile.undetermined)


def isnan(x: Any) -> Any:
    """True where an element is no number. Raises DTypeError for anything but floats."""
    if is_number(x):
        return math.isnan(x)
    tile = of(x, "isnan")
    if tile.dtype.category != "f":
        raise refused(DTypeError(f"isnan is for floats, not {tile.dtype}"))
    return Tile(np.isnan(tile.data), bool_, tile.undetermined)


def where(condition: Any, x: Any, y: Any) -> Tile:
    """Elements of x where the condition holds, of y elsewhere; only what is chosen must be determined."""
    chosen = of(condition, "where: the condition")
    left, right = of(x, "where: x"), of(y, "where: y")
    dtype = common_type("where", x, y)
    holds, a, b = broadcast("where", rounded(chosen.data, bool_), astype(x, dtype).data, astype(y, dtype).data)
    unknown = None
    if any(one.undetermined is not None for one in (chosen, left, right)):
        masks = [_unknown(one, holds.shape) for one in (chosen, left, right)]
        unknown = masks[0] | np.where(holds, masks[1], masks[2])
    return Tile(np.where(holds, a, b), dtype, unknown)


def astype(x: Any, dtype: Any) -> Tile:
    """The elements in another type: floats to nearest even, to integers towards zero."""
    target = dtype_argument(dtype)
    if is_number(x):
        return Tile(rounded(plain_number(x), target), target)
    tile = of(x, "astype")
    return tile if tile.dtype == target else Tile(rounded(tile.data, target), target, tile.undetermined)


def common_type(name: str, x: Any, y: Any, *, division: bool = False) -> DType:
    """The type that two operands promote to. Raises DTypeError with the kernel's line."""
    try:
        return promoted(kind_of(x), kind_of(y), division=division)
    except DTypeError as error:
        raise refused(DTypeError(f"{name}: {error}")) from None


def together(name: str, operands: tuple[Any, ...], dtype: DType) -> tuple[Any, ...]:
    """The elements of all in one type and shape, and where any is undetermined (None for nowhere)."""
    tiles = [astype(one, dtype) for one in operands]
    data = broadcast(name, *(one.data for one in tiles))
    unknown = None
    for one in tiles:
        if one.undetermined is not None:
            mask = _unknown(one, data[0].shape)
            unknown = mask if unknown is None else unknown | mask
    return (*data, unknown)


def broadcast(name: str, *data: Array) -> list[Array]:
    """Arrays in their common shape. Raises ShapeError."""
    try:
        return list(np.broadcast_arrays(*data))
    except ValueError:
        shapes = " and ".join(str(one.shape) for one in data)
        raise refused(ShapeError(f"{name}: tiles of shapes {shapes} do not fit together")) from None


def flushed(data: Array) -> Array:
    """Numbers below the smallest normal one as zero of their sign."""
    if data.dtype.kind != "f":
        return data
    return np.where(np.abs(data) < np.finfo(data.dtype).tiny, np.copysign(data.dtype.type(0), data), data)


def _unknown(tile: Tile, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(False if tile.undetermined is None else tile.undetermined, shape)


def _check_arithmetic(name: str, left: Tile, right: Tile, dtype: DType) -> None:
    for one in (left, right):
        if one.dtype.kind == "r":
            raise refused(DTypeError(f"{name}: {one.dtype} does no arithmetic; convert it by .astype()"))
    if dtype == bool_:
        raise refused(DTypeError(f"{name}: bools do no arithmetic; convert them: .astype(ct.int32)"))
    if name in ("pow", "atan2") and dtype.category != "f":
        raise refused(DTypeError(f"{name} is for floats, not {dtype}; convert an operand by .astype()"))


def _bitwise_type(name: str, x: Any, y: Any) -> DType:
    kinds = [of(one, name).dtype for one in (x, y)]
    shifts = name.endswith("shift")
    if any(one.category == "f" or (shifts and one == bool_) for one in kinds):
        raise refused(DTypeError(f"{name} is for integers, not {kinds[0]} and {kinds[1]}; see ct.bitcast()"))
    if not shifts and isinstance(x, Tile) and isinstance(y, Tile) and kinds[0] != kinds[1]:
        raise refused(DTypeError(f"{name}: operands are {kinds[0]} and {kinds[1]}; they must have one type"))
    if not shifts and {kinds[0].name, kinds[1].name} == {"bool_", "int8"}:
        raise refused(DTypeError(f"{name}: bool_ with int8 is not there; convert the bool: .astype(ct.int8)"))
    return common_type(name, x, y)


def _check_divisor(name: str, divisor: Array, unknown: Array | None) -> None:
    zero = divisor == 0
    if unknown is not None:
        zero = zero & ~unknown
    if zero.any():
        at = tuple(int(one) for one in np.argwhere(zero)[0])
        raise finding("integer division by zero", f"{name}: element {at} of the divisor is 0")


_CONSTANTS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "cdiv": lambda a, b: -(-a // b), "mod": operator.mod, "pow": operator.pow,
    "atan2": math.atan2, "minimum": min, "maximum": max, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "bitwise_lshift": operator.lshift, "bitwise_rshift": operator.rshift,
    "greater": operator.gt, "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip


def _of_numbers(name: str, x: Any, y: Any) -> Any:
    """Constants stay Python's, as they do while a kernel is compiled."""
    try:
        return _CONSTANTS[name](x, y)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise refused(GPUError(f"{name} of {x!r} and {y!r}: {error}")) from None


_CONSTANT_UNARY: dict[str, Callable[[Any], Any]] = {
    "abs": operator.abs,
    "negative": operator.neg,
    "bitwise_not": operator.invert,
}


def _of_number(name: str, x: Any) -> Any:
    if name in _CONSTANT_UNARY:
        return _CONSTANT_UNARY[name](x)
    if name in ("floor", "ceil"):
        return float(_PLAIN_UNARY[name](x))
    with np.errstate(all="ignore"):
        return float(_FLOATS[name](float(x)))
