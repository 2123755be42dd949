"""Data types: DataType objects, their spellings, and the codes shared with C++ (native/include/pygpukit/dtype.h).

NumPy's own types are accepted everywhere a type is expected. NumPy has no bfloat16, no 8-bit and no 4-bit floats: on
the host those appear as their bits (uint16 and uint8), and int4 as int8, one value a byte, always, whatever else is
imported. Arrays of the `ml_dtypes` package are understood when they come in.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from pygpukit._core import native
from pygpukit.core.errors import DTypeError

if TYPE_CHECKING:
    import numpy as np

    DTypeLike: TypeAlias = "str | DataType | type | np.dtype[Any]"


class DataTypeKind(Enum):
    """What a type is; the value is its name."""

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
    """A data type of arrays. itemsize is in bytes. Equal to its name and to the NumPy type of that name."""

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
        found = _SPELLINGS.get(name)
        if found is None:
            raise _unknown(f"NumPy dtype {name!r}")
        return found

    @staticmethod
    def from_string(name: str) -> DataType:
        """The type of that name or short name. Raises DTypeError, which lists the names."""
        found = _SPELLINGS.get(name)
        if found is None:
            raise _unknown(f"dtype {name!r}")
        return found

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
        return hash(("dtype", self.name))  # apart from the bare name, so that look-ups by name compare strings only

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

_HOST_NAMES = {
    "bfloat16": "uint16",
    "float8_e4m3": "uint8",
    "float8_e5m2": "uint8",
    "int4": "int8",
    "float4_e2m1": "uint8",
}

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
        found = _SPELLINGS.get(spelling)
    except TypeError:  # unhashable
        found = None
    if found is not None:
        return found
    # A NumPy spelling can only come from a process that has NumPy loaded; a short name such as "f4" may not.
    if isinstance(spelling, str) or (spelling is not None and "numpy" in sys.modules):
        import numpy as np

        try:
            found = _SPELLINGS.get(np.dtype(spelling).name)
        except TypeError:
            found = None
    if found is None:
        raise _unknown(f"dtype {spelling!r}")
    return found


native.register_dtypes(
    {dtype: dtype.code for dtype in DTYPES} | {spelling: dtype.code for spelling, dtype in _SPELLINGS.items()},
    DTYPES,
    lambda spelling: as_dtype(spelling).code,
)
