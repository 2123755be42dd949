"""The standard's functions on data types, and what it wants to know about the library. No device work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import promotion
from pygpukit.array.promotion import COMPLEX, FLOATS, SIGNED, UNSIGNED
from pygpukit.core.device import device_count
from pygpukit.core.dtypes import DTYPES, STORAGE_ONLY, DataType, as_dtype, bfloat16, bool_, complex128, float64, int64
from pygpukit.core.errors import DTypeError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.core.dtypes import DTypeLike

DEFAULT_FLOAT = float64
_MAX_DIMENSIONS = 16  # native/bindings/array.h: kMaxDims

_KINDS: dict[str, tuple[DataType, ...]] = {
    "bool": (bool_,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + FLOATS + COMPLEX,
}
# (exponent bits, mantissa bits) of the floating-point types.
_LAYOUTS = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}


def astype(x: GPUArray, dtype: DTypeLike, /, *, copy: bool = True, device: int | None = None) -> GPUArray:
    """x converted to dtype; x itself when copy is false and the type is its own. Complex to real raises DTypeError."""
    target = as_dtype(dtype)
    if x.dtype in COMPLEX and target not in COMPLEX and target != bool_:
        raise DTypeError(f"astype: complex numbers are not converted to {target}; take real() or abs() first")
    result = x.astype(target) if copy or x.dtype != target else x
    return result if device is None else result.to_device(device)


def can_cast(from_: DataType | GPUArray, to: DataType, /) -> bool:
    """True when arrays of from_ promote to `to` with arrays of `to`, inside one kind as the standard defines it."""
    source, target = _dtype_of(from_), as_dtype(to)
    if source in STORAGE_ONLY or target in STORAGE_ONLY:
        return source == target
    kinds = ("bool",), ("integral",), ("real floating", "complex floating")
    if not any(isdtype(source, kind) and isdtype(target, kind) for kind in kinds):
        return False
    if source in UNSIGNED and target in SIGNED and source.itemsize >= target.itemsize:
        return False
    return promotion.promote(source, target) == target


@dataclass(frozen=True, eq=False)
class FloatInfo:
    """The result of finfo(); the numbers are Python floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DataType


@dataclass(frozen=True, eq=False)
class IntegerInfo:
    """The result of iinfo()."""

    bits: int
    max: int
    min: int
    dtype: DataType


def finfo(type: DataType | GPUArray, /) -> FloatInfo:
    """Limits of a floating-point type; of the parts of a complex one. Raises DTypeError for others."""
    queried = _dtype_of(type)
    dtype = as_dtype({"complex64": "float32", "complex128": "float64"}.get(queried.name, queried.name))
    if dtype.name not in _LAYOUTS:
        raise DTypeError(f"finfo: {queried} is no floating-point type; iinfo() tells of integers")
    exponent_bits, mantissa_bits = _LAYOUTS[dtype.name]
    bias = 2 ** (exponent_bits - 1) - 1
    largest = (2.0 - 2.0**-mantissa_bits) * 2.0**bias
    return FloatInfo(8 * dtype.itemsize, 2.0**-mantissa_bits, largest, -largest, 2.0 ** (1 - bias), dtype)


def iinfo(type: DataType | GPUArray, /) -> IntegerInfo:
    """Limits of an integer type. Raises DTypeError for others."""
    dtype = _dtype_of(type)
    if not promotion.is_integer(dtype):
        raise DTypeError(f"iinfo: {dtype} is no integer type; finfo() tells of floating-point types")
    bits = 8 * dtype.itemsize
    if dtype in UNSIGNED:
        return IntegerInfo(bits, 2**bits - 1, 0, dtype)
    return IntegerInfo(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)


def isdtype(dtype: DataType, kind: DataType | str | tuple[DataType | str, ...]) -> bool:
    """True when dtype is of that kind ("bool", "integral", "real floating", ...) or one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: kind {kind!r} is unknown; use a data type or one of {', '.join(_KINDS)}")
        return dtype in _KINDS[kind]
    return dtype == as_dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> DataType:
    """The type of an operation on these arrays, types and Python numbers. Raises DTypeError where there is none."""
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (bool, int, float, complex))]
    dtypes = [_dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, (bool, int, float, complex))]
    if not dtypes:
        raise ValueError("result_type: at least one array or data type is needed")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promotion.promote(result, dtype)
    for number in numbers:
        result = promotion.with_scalar(result, number)
    return result


def _dtype_of(x: Any) -> DataType:
    return x.dtype if isinstance(x, native.ArrayBase) else as_dtype(x)


class __array_namespace_info__:
    """The library's capabilities, as the standard asks."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and data-dependent shapes are there; they wait for the device."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MAX_DIMENSIONS}

    def default_device(self) -> int:
        """The device that new arrays are on."""
        return native.current_device()

    def default_dtypes(self, *, device: int | None = None) -> dict[str, DataType]:
        """Types of new arrays when none is given; the same on every device."""
        return {"real floating": DEFAULT_FLOAT, "complex floating": complex128, "integral": int64, "indexing": int64}

    def devices(self) -> tuple[int, ...]:
        """Indices of the devices."""
        return tuple(range(device_count()))

    def dtypes(self, *, device: int | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DataType]:
        """The standard's types of that kind, by name; without a kind all of them. float16 and bfloat16 are extras."""
        standard = {d.name: d for d in DTYPES if d not in STORAGE_ONLY and d.name != "float16" and d != bfloat16}
        return {name: d for name, d in standard.items() if kind is None or isdtype(d, kind)}
