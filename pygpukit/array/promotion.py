"""Type promotion as NumPy 2 does it, without NumPy: array with array by type, array with Python scalar by kind.

bfloat16 promotes as float16 does, and the two together give float32. Storage-only types take no part.
"""

from __future__ import annotations

from functools import cache

from pygpukit.core.dtypes import (
    STORAGE_ONLY,
    DataType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from pygpukit.core.errors import DTypeError

Scalar = bool | int | float | complex

SIGNED: tuple[DataType, ...] = (int8, int16, int32, int64)
UNSIGNED: tuple[DataType, ...] = (uint8, uint16, uint32, uint64)
FLOATS: tuple[DataType, ...] = (float16, bfloat16, float32, float64)
COMPLEX: tuple[DataType, ...] = (complex64, complex128)

# Order of kinds: a value of a lower kind may go to a higher one, not back.
_BOOL, _INTEGER, _FLOAT, _COMPLEX = range(4)


_KINDS = {dtype.name: _INTEGER for dtype in SIGNED + UNSIGNED}
_KINDS |= {dtype.name: _FLOAT for dtype in FLOATS} | {dtype.name: _COMPLEX for dtype in COMPLEX} | {"bool": _BOOL}


def _kind(dtype: DataType) -> int:
    kind = _KINDS.get(dtype.name)
    if kind is None:
        raise DTypeError(f"{dtype} is a storage type without arithmetic; convert to a type that computes first")
    return kind


def is_integer(dtype: DataType) -> bool:
    """True for signed and unsigned integers (not for bool)."""
    return _KINDS.get(dtype.name) == _INTEGER


def is_inexact(dtype: DataType) -> bool:
    """True for floats and complex."""
    return _KINDS.get(dtype.name, _BOOL) >= _FLOAT


@cache
def promote(a: DataType, b: DataType) -> DataType:
    """The type of an operation on arrays of types a and b. Raises DTypeError for storage-only types."""
    low, high = sorted((a, b), key=_kind)
    if a == b:
        return a
    if _kind(low) == _BOOL:
        return high
    if _kind(high) == _INTEGER:
        return _promote_integers(low, high)
    if _kind(high) == _FLOAT:
        return _promote_floats(_float_for(low), high)
    part = float32 if high == complex64 else float64
    other = _part(low) if _kind(low) == _COMPLEX else _float_for(low)
    return complex128 if _promote_floats(other, part) == float64 else complex64


def _promote_integers(a: DataType, b: DataType) -> DataType:
    if (a in SIGNED) == (b in SIGNED):
        return max(a, b, key=lambda dtype: dtype.itemsize)
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    wider = [dtype for dtype in SIGNED if dtype.itemsize > unsigned.itemsize]
    return wider[0] if wider else float64


def _promote_floats(a: DataType | None, b: DataType) -> DataType:
    if a is None or a == b:
        return b
    return float32 if a.itemsize == b.itemsize else max(a, b, key=lambda dtype: dtype.itemsize)


def _part(dtype: DataType) -> DataType:
    return float32 if dtype == complex64 else float64


def _float_for(dtype: DataType) -> DataType | None:
    """The smallest float that an integer promotes to beside another float; None when every float will do."""
    if dtype in FLOATS:
        return dtype
    return None if dtype.itemsize == 1 else float32 if dtype.itemsize == 2 else float64


def true_divide(dtype: DataType) -> DataType:
    """The type of a true division whose operands promote to dtype: integers divide to float64."""
    return dtype if is_inexact(dtype) else float64


def with_scalar(dtype: DataType, value: Scalar) -> DataType:
    """The type of an operation of an array of dtype with a Python scalar, which only contributes its kind.

    Raises OverflowError when an integer does not fit an integer array's type, as NumPy 2 does.
    """
    own, kind = _kind(dtype), _scalar_kind(value)
    if isinstance(value, int) and is_integer(dtype):
        check_fits(value, dtype)
    if kind <= own:
        return dtype
    if kind == _INTEGER:
        return int64
    if kind == _FLOAT:
        return float64
    return complex64 if own == _FLOAT and dtype != float64 else complex128


def of_number(value: Scalar) -> DataType:
    """The type that a Python number has as an array."""
    return (bool_, int64, float64, complex128)[_scalar_kind(value)]


def _scalar_kind(value: Scalar) -> int:
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _INTEGER
    return _FLOAT if isinstance(value, float) else _COMPLEX


def limits(dtype: DataType) -> tuple[int, int]:
    """The least and the largest value of an integer type."""
    bits = 8 * dtype.itemsize
    return (0, 2**bits - 1) if dtype in UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def check_fits(value: int, dtype: DataType) -> None:
    """Raises OverflowError when the integer value is out of the range of the integer type dtype."""
    low, high = limits(dtype)
    if not low <= value <= high:
        raise OverflowError(f"{value} does not fit {dtype} ({low} to {high}); convert the array to a wider type first")


SAME_KIND = "same_kind"
_RULES = ("no", "equiv", "safe", SAME_KIND, "unsafe")


def check_casting(casting: str, what: str) -> None:
    """Raises ValueError for what is no rule of conversions."""
    if casting not in _RULES:
        raise ValueError(f"{what}: casting is {casting!r}; use one of {', '.join(map(repr, _RULES))}")


def can_cast(source: DataType, target: DataType, casting: str) -> bool:
    """True when a conversion is allowed by one of NumPy's rules."""
    if source == target or casting == "unsafe":
        return True
    if casting in ("no", "equiv"):
        return False
    if casting == SAME_KIND:
        return can_store(source, target)
    return source not in STORAGE_ONLY and target not in STORAGE_ONLY and promote(source, target) == target


def can_store(source: DataType, target: DataType) -> bool:
    """True when results of type source may be written into target: the same kind or a higher one, as NumPy."""
    if source == target:
        return True
    if source in STORAGE_ONLY or target in STORAGE_ONLY:
        return False
    if _kind(source) == _kind(target) == _INTEGER:
        return not (source in SIGNED and target in UNSIGNED)
    return _kind(source) <= _kind(target)
