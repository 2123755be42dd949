"""Data types: DataType objects, their spellings, and the codes shared with C++ (native/include/pygpukit/dtype.h).

NumPy's own types are accepted everywhere a type is expected. NumPy has no bfloat16, no 8-bit and no 4-bit floats: on
the host those appear as their bits (uint16 and uint8), and int4 as int8, one value a byte, always, whatever else is
imported. Arrays of the `ml_dtypes` package are understood when they come in.
"""

from __future__ import annotations

import contextlib
import re
import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit._core import native
from pygpukit.core.errors import DTypeError

if TYPE_CHECKING:
    import numpy as np

    DTypeLike: TypeAlias = "str | DataType | type | np.dtype[Any]"

# The letter that NumPy's dtype.kind has, by a type's name without its size.
_LETTERS = {"bool": "b", "int": "i", "uint": "u", "float": "f", "bfloat": "f", "complex": "c"}
_ORDER = b"<" if sys.byteorder == "little" else b">"
_PLAIN_NAME = re.compile(r"[<>=|]?[A-Za-z?]\w*")  # what NumPy reads as one type; it parses other texts as tables

# What stands for a type on the host that NumPy lacks: its bits.
_HOST_NAMES = {
    "bfloat16": "uint16",
    "float8_e4m3": "uint8",
    "float8_e5m2": "uint8",
    "int4": "int8",
    "float4_e2m1": "uint8",
}


class DataTypeKind(str, Enum):
    """The kind of a type. The value is its name; beside a string it is NumPy's letter: x.dtype.kind == "f" or "iu"."""

    def __new__(cls, name: str) -> DataTypeKind:
        member = str.__new__(cls, _LETTERS[name.rstrip("_em0123456789")])
        member._value_ = name
        return member

    def __eq__(self, other: object) -> bool:
        return self is other if isinstance(other, DataTypeKind) else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    FLOAT8_E4M3 = "float8_e4m3"
    FLOAT8_E5M2 = "float8_e5m2"
    INT4 = "int4"
    FLOAT4_E2M1 = "float4_e2m1"


@dataclass(frozen=True, eq=False)
class DataType:
    """A data type of arrays. itemsize is in bytes. Equal to its name and to the NumPy type of that name.

    NumPy takes it wherever it takes a type of its own, `np.zeros(3, x.dtype)`, but for the types that it lacks. Called
    with a number it gives NumPy's scalar of that type.
    """

    kind: DataTypeKind
    itemsize: int
    name: str

    def to_numpy_dtype(self) -> np.dtype[Any]:
        """The type this one has on the host; for types NumPy does not know, the unsigned integer with the same bits."""
        import numpy as np

        return np.dtype(_HOST_NAMES.get(self.name, self.name))

    @staticmethod
    def from_numpy_dtype(dtype: Any) -> DataType:
        """The type of a NumPy dtype (or of an `ml_dtypes` one). Raises DTypeError for one that has no counterpart."""
        import numpy as np

        name = np.dtype(dtype).name
        known = _SPELLINGS.get(name)
        if known is None:
            raise _unknown(f"NumPy dtype {name!r}")
        return known

    @staticmethod
    def from_string(name: str) -> DataType:
        """The type of that name or short name. Raises DTypeError, which lists the names."""
        known = _SPELLINGS.get(name)
        if known is None:
            raise _unknown(f"dtype {name!r}")
        return known

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type, which makes this one a type for NumPy. AttributeError where NumPy has none."""
        if self.name in _HOST_NAMES:
            raise AttributeError(f"NumPy has no {self.name}; .to_numpy_dtype() is the type of its bits")
        return self.to_numpy_dtype()

    @property
    def type(self) -> Any:
        """NumPy's class of scalars of this type."""
        return self.dtype.type

    @property
    def char(self) -> str:
        """NumPy's one letter for the type."""
        return self.dtype.char

    @property
    def num(self) -> int:
        """NumPy's number of the type."""
        return self.dtype.num

    def __call__(self, value: Any = 0) -> Any:
        return self.type(value)

    @property
    def code(self) -> int:
        """The number C++ knows this type by."""
        return _CODES[self.kind]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DataType):
            return self.kind is other.kind
        try:
            return as_dtype(other).kind is self.kind
        except DTypeError:
            return NotImplemented

    def __hash__(self) -> int:
        if self.name in _HOST_NAMES:
            return hash(("dtype", self.name))  # apart from the bare name: look-ups by name compare strings only
        # NumPy's type of that name has the same, so that each is found in a set of the other. NumPy need not be loaded.
        order, part = b"|" if self.itemsize == 1 else _ORDER, self.itemsize // (1 + (self.kind == "c"))
        return hash((str.__str__(self.kind).encode(), order, 0, self.itemsize, part))

    def __repr__(self) -> str:
        return f"pygpukit.{self.name}"

    def __str__(self) -> str:
        return self.name


def _type(kind: DataTypeKind, itemsize: int) -> DataType:
    return DataType(kind, itemsize, kind.value)


bool_ = _type(DataTypeKind.BOOL, 1)
int8 = _type(DataTypeKind.INT8, 1)
int16 = _type(DataTypeKind.INT16, 2)
int32 = _type(DataTypeKind.INT32, 4)
int64 = _type(DataTypeKind.INT64, 8)
uint8 = _type(DataTypeKind.UINT8, 1)
uint16 = _type(DataTypeKind.UINT16, 2)
uint32 = _type(DataTypeKind.UINT32, 4)
uint64 = _type(DataTypeKind.UINT64, 8)
float16 = _type(DataTypeKind.FLOAT16, 2)
bfloat16 = _type(DataTypeKind.BFLOAT16, 2)
float32 = _type(DataTypeKind.FLOAT32, 4)
float64 = _type(DataTypeKind.FLOAT64, 8)
complex64 = _type(DataTypeKind.COMPLEX64, 8)
complex128 = _type(DataTypeKind.COMPLEX128, 16)
float8_e4m3 = _type(DataTypeKind.FLOAT8_E4M3, 1)
float8_e5m2 = _type(DataTypeKind.FLOAT8_E5M2, 1)
int4 = _type(DataTypeKind.INT4, 1)
float4_e2m1 = _type(DataTypeKind.FLOAT4_E2M1, 1)

# Position = code. The order is dtype.h's.
DTYPES: tuple[DataType, ...] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
    complex64, complex128, float8_e4m3, float8_e5m2, int4, float4_e2m1,
)  # fmt: skip
_CODES = {dtype.kind: code for code, dtype in enumerate(DTYPES)}

# Types without arithmetic: they are stored, copied and reinterpreted only.
STORAGE_ONLY = frozenset({float8_e4m3, float8_e5m2, int4, float4_e2m1})

_SPELLINGS: dict[Any, DataType] = {dtype.name: dtype for dtype in DTYPES} | {
    "bool_": bool_,
    "half": float16,
    "fp16": float16,
    "bf16": bfloat16,
    "fp32": float32,
    "fp64": float64,
    "float8_e4m3fn": float8_e4m3,  # ml_dtypes' names
    "float4_e2m1fn": float4_e2m1,
    bool: bool_,
    int: int64,
    float: float64,
    complex: complex128,
}


def _unknown(what: str) -> DTypeError:
    return DTypeError(f"{what} is not supported; use one of {', '.join(dtype.name for dtype in DTYPES)}")


def as_dtype(spelling: Any) -> DataType:
    """The DataType of any accepted spelling: DataType, name, Python type, NumPy dtype or scalar type.

    Raises DTypeError naming the spelling and the names there are.
    """
    if isinstance(spelling, DataType):
        return spelling
    try:
        known = _SPELLINGS.get(spelling)
    except TypeError:  # unhashable
        known = None
    if known is not None:
        return known
    # A NumPy spelling can only come from a process that has NumPy loaded; a short name such as "f4" may not.
    named = isinstance(spelling, str)
    if _PLAIN_NAME.fullmatch(spelling) if named else spelling is not None and "numpy" in sys.modules:
        import numpy as np

        with contextlib.suppress(TypeError, ValueError, DeprecationWarning):
            known = _SPELLINGS.get(np.dtype(spelling).name)
    if known is None:
        raise _unknown(f"dtype {spelling!r}")
    return known


native.register_dtypes(
    {dtype: dtype.code for dtype in DTYPES} | {spelling: dtype.code for spelling, dtype in _SPELLINGS.items()},
    DTYPES,
    lambda spelling: as_dtype(spelling).code,
)
