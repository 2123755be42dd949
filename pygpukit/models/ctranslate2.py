"""CTranslate2's model.bin: what it holds, checked before anything is read. Versions 4 to 6."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import DataType, bfloat16, float16, float32, int8, int16, int32
from pygpukit.models.mapped import MappedFile

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_TYPES: tuple[DataType, ...] = (float32, int8, int16, int32, float16, bfloat16)  # by their numbers in the file
_VERSIONS = range(4, 7)
_MAX_DIMENSIONS = 8
_MAX_VARIABLES = 1 << 20


@dataclass(frozen=True)
class Variable:
    """An array of the file. start: where its bytes begin."""

    shape: tuple[int, ...]
    dtype: DataType
    start: int


class ModelBin:
    """A mapped model.bin. spec: what kind of model it says it is ("WhisperSpec"). variables: by name, aliases too.

    Raises ModelFileError for a file that is malformed, cut off or of another version, OSError where it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._file = MappedFile(path)
        self._at = 0
        version = self._number("<I", "version")
        if version not in _VERSIONS:
            raise self._file.error(
                f"its version is {version}, read are {_VERSIONS[0]} to {_VERSIONS[-1]} of CTranslate2's model.bin"
            )
        self.spec = self._string("the name of its specification")
        self.revision = self._number("<I", "revision")
        self.variables: dict[str, Variable] = {}
        for _ in range(self._count("variables")):
            self._add(self._string("the name of a variable"), self._variable())
        for _ in range(self._count("aliases")):
            alias, name = self._string("an alias"), self._string("what an alias stands for")
            if name not in self.variables:
                raise self._file.error(f"the alias {alias!r} stands for {name!r}, which is not there")
            self._add(alias, self.variables[name])
        if self._at != self._file.size:
            raise self._file.error(f"{self._file.size - self._at} bytes follow its end at byte {self._at}")

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    def array(self, name: str) -> Array:
        """The elements of a variable as stored, a read-only view (bfloat16 as uint16 bits). Raises KeyError."""
        variable = self.variables[name]
        return self._file.array(variable.dtype.to_numpy_dtype(), variable.shape, variable.start)

    def scalar(self, name: str, otherwise: int) -> int:
        """An integer of the file; otherwise where it is not there."""
        return int(self.array(name).reshape(-1)[0]) if self._is_scalar(name) else otherwise

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _is_scalar(self, name: str) -> bool:
        variable = self.variables.get(name)
        return variable is not None and variable.shape in ((), (1,)) and variable.dtype in (int8, int16, int32)

    def _add(self, name: str, variable: Variable) -> None:
        if name in self.variables:
            raise self._file.error(f"{name!r} is there twice")
        self.variables[name] = variable

    def _variable(self) -> Variable:
        rank = self._number("<B", "rank")
        if rank > _MAX_DIMENSIONS:
            raise self._file.error(
                f"a variable before byte {self._at} has {rank} dimensions, at most {_MAX_DIMENSIONS}"
            )
        shape = tuple(self._number("<I", "extent") for _ in range(rank))
        number = self._number("<B", "type")
        if number >= len(_TYPES):
            raise self._file.error(
                f"a variable before byte {self._at} has type {number}, types are 0 to {len(_TYPES) - 1}"
            )
        size, dtype = self._number("<I", "size"), _TYPES[number]
        elements = 1
        for extent in shape:
            elements *= extent
        if size != elements * dtype.itemsize:
            raise self._file.error(f"a variable of shape {shape} and type {dtype} says it has {size} bytes")
        start = self._at
        self._skip(size)
        return Variable(shape, dtype, start)

    def _count(self, what: str) -> int:
        count = self._number("<I", f"number of {what}")
        if count > _MAX_VARIABLES:
            raise self._file.error(f"it says it has {count} {what}, at most {_MAX_VARIABLES}")
        return count

    def _number(self, form: str, what: str) -> int:
        return int(struct.unpack(form, self._bytes(struct.calcsize(form), what))[0])

    def _string(self, what: str) -> str:
        raw = self._bytes(self._number("<H", what), what)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            raise self._file.error(f"{what} before byte {self._at} is no UTF-8 text") from None
        if not text.endswith("\0"):
            raise self._file.error(f"{what} before byte {self._at} does not end with a zero")
        return text[:-1]

    def _bytes(self, count: int, what: str) -> bytes:
        if self._at + count > self._file.size:
            raise self._file.error(f"it ends at byte {self._file.size}, within {what}")
        raw = self._file.bytes(self._at, count)
        self._at += count
        return raw

    def _skip(self, count: int) -> None:
        if self._at + count > self._file.size:
            raise self._file.error(f"it ends at byte {self._file.size}, {count} bytes from byte {self._at} are missing")
        self._at += count
