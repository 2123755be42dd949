"""Types of tiles by cuTile's names: which there are, how two promote, and which conversions happen unasked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pygpukit.core.dtypes import DataType, as_dtype
from pygpukit.core.errors import DTypeError

_RANKS = "bif"  # a category to the right wins over one to the left


@dataclass(frozen=True)
class DType:
    """A type of elements. kind: "b", "i", "u", "f", or "r" for floats that do no arithmetic but products.

    host: NumPy's type that the interpreter computes in; every result is rounded to the type itself.
    """

    name: str
    kind: str
    bitwidth: int
    host: str

    @property
    def category(self) -> str:
        """ "b", "i" or "f"."""
        return {"u": "i", "r": "f"}.get(self.kind, self.kind)

    @property
    def array_dtype(self) -> DataType:
        """The type of arrays that has these elements. Raises DTypeError for one that arrays do not have."""
        if self.name == "tfloat32":
            raise DTypeError("no array has elements of tfloat32; convert to float32 before you store")
        return as_dtype(self.name.removesuffix("_"))

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


bool_ = DType("bool_", "b", 1, "bool")
int8, int16, int32, int64 = (DType(f"int{bits}", "i", bits, f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{bits}", "u", bits, f"uint{bits}") for bits in (8, 16, 32, 64))
float16 = DType("float16", "f", 16, "float16")
bfloat16 = DType("bfloat16", "f", 16, "float32")
float32 = DType("float32", "f", 32, "float32")
float64 = DType("float64", "f", 64, "float64")
tfloat32 = DType("tfloat32", "r", 32, "float32")
float8_e4m3fn = DType("float8_e4m3fn", "r", 8, "float32")
float8_e5m2 = DType("float8_e5m2", "r", 8, "float32")
float4_e2m1fn = DType("float4_e2m1fn", "r", 4, "float32")

DTYPES = {
    one.name: one
    for one in (
        bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, tfloat32,
        float8_e4m3fn, float8_e5m2, float4_e2m1fn,
    )
}  # fmt: skip
_BY_ARRAY = {"bool": bool_, "float8_e4m3": float8_e4m3fn, "float4_e2m1": float4_e2m1fn}


def named(spelling: Any) -> DType:
    """The DType of a DType, of cuTile's own, of an array's type, NumPy's or PyTorch's. Raises DTypeError for others."""
    if isinstance(spelling, DType):
        return spelling
    name = getattr(spelling, "name", None)
    if type(spelling).__module__ == "torch":
        name = str(spelling).rpartition(".")[2]
    if isinstance(name, str) and (name in DTYPES or name in _BY_ARRAY):
        return DTYPES.get(name) or _BY_ARRAY[name]
    try:
        known = as_dtype(spelling).name
    except DTypeError:
        known = ""
    known_type = _BY_ARRAY.get(known) or DTYPES.get(known)
    if known_type is None or isinstance(spelling, str):
        raise DTypeError(f"{spelling!r} is no type of tiles; there are: {', '.join(DTYPES)}")
    return known_type


def of_number(value: bool | int | float) -> DType:
    """The type that a number of Python has by itself. Raises DTypeError for an integer of more than 64 bits."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, float):
        return float32
    for dtype in (int32, int64, uint64):
        if fits(value, dtype):
            return dtype
    raise DTypeError(f"{value} needs more than 64 bits; no type of tiles has them")


def fits(value: int, dtype: DType) -> bool:
    """True where an integer is in the range of an integer type."""
    limits = np.iinfo(dtype.host)
    return int(limits.min) <= value <= int(limits.max)


def promoted(x: DType | float, y: DType | float, *, division: bool = False) -> DType:
    """The type that an operation on both has. A number of Python takes the other's type where its category allows.

    Raises DTypeError for types that do not promote, and for an integer that the other's type cannot hold.
    """
    if isinstance(x, DType) and isinstance(y, DType):
        common = _common(x, y)
    elif isinstance(x, DType):
        common = _with_number(x, y, not division)  # type: ignore[arg-type]
    elif isinstance(y, DType):
        common = _with_number(y, x, not division)
    else:
        common = _common(of_number(x), of_number(y))
    return float32 if division and common.category != "f" else common


def _common(x: DType, y: DType) -> DType:
    if x == y:
        return x
    if "r" in (x.kind, y.kind):
        raise DTypeError(f"{x} and {y} do not promote: a float that does no arithmetic; convert one by .astype()")
    if x.category != y.category:
        return max(x, y, key=lambda one: _RANKS.index(one.category))
    if x.kind != y.kind or {x.name, y.name} == {"float16", "bfloat16"}:
        raise DTypeError(f"{x} and {y} do not promote; convert one by .astype()")
    return max(x, y, key=lambda one: one.bitwidth)


def _with_number(dtype: DType, number: bool | int | float, in_range: bool) -> DType:
    own = of_number(number)
    if _RANKS.index(own.category) > _RANKS.index(dtype.category):
        return own
    if in_range and own.category == dtype.category == "i" and not fits(int(number), dtype):
        raise DTypeError(f"{number} is outside of the range of {dtype}; convert the tile by .astype()")
    return dtype


def check_implicit(source: DType | float, target: DType, what: str) -> None:
    """Raises DTypeError where a value of the source may not become one of the target unasked."""
    if isinstance(source, DType):
        try:
            allowed = _common(source, target) == target
        except DTypeError:
            allowed = False
        if not allowed:
            raise DTypeError(f"{what}: {source} does not become {target} by itself; convert it: .astype(ct.{target})")
        return
    own = of_number(source)
    if target.category == "b":
        allowed = own.category != "f" and source in (0, 1)
    else:
        allowed = _RANKS.index(own.category) <= _RANKS.index(target.category)
        allowed = allowed and (target.category != "i" or fits(int(source), target))
    if not allowed:
        raise DTypeError(f"{what}: {source!r} is no value of {target}")
