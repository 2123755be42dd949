"""Safetensors files: one, or several with an index. Mapped into memory and checked before anything is read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core import dtypes
from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import ModelFileError
from pygpukit.models.convert import convert
from pygpukit.models.documents import parse_object, read_object
from pygpukit.models.mapped import MappedFile

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_INTEGER_LIMIT = 1 << 63
_MAX_PARTS = 4096
_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.safetensors")
_LONGEST_HEADER = 100_000_000  # bytes; the format's own limit


class OfEither:
    """An attribute of a class and of its members: `Dtype.element_size(dtype)`, and `dtype.element_size`."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read

    def __get__(self, member: IntEnum | None, owner: type[IntEnum]) -> Any:
        return self._read if member is None else self._read(member)


class Dtype(IntEnum):
    """The data types of tensors in files. `element_size`, in bytes, may be asked of the class or of a member."""

    Float32 = 0
    Float16 = 1
    BFloat16 = 2
    Float64 = 3
    Float8E4M3 = 4
    Float8E5M2 = 5
    Int32 = 6
    Int64 = 7
    Int16 = 8
    Int8 = 9
    UInt8 = 10
    Bool = 11
    UInt16 = 12
    UInt32 = 13
    UInt64 = 14
    Complex64 = 15

    @property
    def data_type(self) -> DataType:
        """The type of arrays that hold it."""
        return _TYPES[_SPELLINGS[self]]

    element_size = OfEither(lambda dtype: Dtype(dtype).data_type.itemsize)


_TYPES = {
    "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F64": dtypes.float64,
    "F8_E4M3": dtypes.float8_e4m3, "F8_E5M2": dtypes.float8_e5m2, "I32": dtypes.int32, "I64": dtypes.int64,
    "I16": dtypes.int16, "I8": dtypes.int8, "U8": dtypes.uint8, "BOOL": dtypes.bool_, "U16": dtypes.uint16,
    "U32": dtypes.uint32, "U64": dtypes.uint64, "C64": dtypes.complex64,
}  # fmt: skip
_SPELLINGS = dict(zip(Dtype, _TYPES, strict=True))
_BY_SPELLING = {spelling: dtype for dtype, spelling in _SPELLINGS.items()}


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a file. offset is where its bytes begin after the header; sizes are in bytes."""

    name: str
    dtype: Dtype
    shape: list[int]
    offset: int
    size_bytes: int

    @property
    def numel(self) -> int:
        """The number of elements."""
        return self.size_bytes // self.dtype.element_size

    @property
    def dtype_name(self) -> str:
        """The type's name: "float32", "bfloat16"."""
        return self.dtype.data_type.name


class SafeTensorsFile:
    """One file, mapped into memory. Raises ModelFileError, which says what is wrong, where it is malformed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = MappedFile(path)
        self.path = self._file.path
        try:
            self.metadata, self._tensors, self._begin = _read_header(self._file)
        except BaseException:
            self._file.close()
            raise

    @property
    def tensor_names(self) -> list[str]:
        """The names, in the file's order."""
        return list(self._tensors)

    @property
    def file_size(self) -> int:
        """Bytes of the file."""
        return self._file.size

    @property
    def num_tensors(self) -> int:
        """Number of tensors."""
        return len(self._tensors)

    def tensor_info(self, name: str) -> TensorInfo:
        """The file's entry of a tensor. Raises KeyError, which says where it was looked for."""
        info = self._tensors.get(name)
        if info is None:
            raise KeyError(f"{self.path} has no tensor {name!r}; it has {self.num_tensors}, see tensor_names")
        return info

    def array(self, name: str) -> Array:
        """The values as a read-only view of the file; bfloat16 and 8-bit floats as their bits."""
        info = self.tensor_info(name)
        kind = info.dtype.data_type.to_numpy_dtype()
        return self._file.array(kind, tuple(info.shape), self._begin + info.offset)

    def tensor_bytes(self, name: str) -> bytes:
        """A copy of the stored bytes."""
        info = self.tensor_info(name)
        return self._file.bytes(self._begin + info.offset, info.size_bytes)

    def tensor_as_f32(self, name: str) -> Array:
        """The values as float32, of the tensor's shape. A copy, also where they are stored so."""
        values = convert(self.array(name), self.tensor_info(name).dtype.data_type, dtypes.float32)
        return values if values.flags.writeable else values.copy()

    def tensor_data_ptr(self, name: str) -> tuple[int, int]:
        """Address and bytes of the tensor in the mapped file; valid until close()."""
        return int(self.array(name).__array_interface__["data"][0]), self.tensor_info(name).size_bytes

    def close(self) -> None:
        """Let go of the file. What was read stays valid."""
        self._file.close()

    def __len__(self) -> int:
        return self.num_tensors

    def __contains__(self, name: object) -> bool:
        return name in self._tensors


class ShardedSafeTensorsFile:
    """Several files as one: those that an index names, or by of() the parts of a model without one.

    A file of an index is opened when a tensor of it is first asked for, and may lie beside it only. Raises
    ModelFileError where it names others, or is malformed.
    """

    def __init__(self, index_json_path: str | os.PathLike[str]) -> None:
        self.path = Path(index_json_path)
        names = read_object(self.path).get("weight_map")
        if not isinstance(names, dict) or not names:
            raise ModelFileError(
                f"{self.path}: it has no weight_map that names tensors and their files", str(self.path)
            )
        for name, file in names.items():
            if not isinstance(file, str) or file != Path(file).name or file in ("", "..") or not file.isprintable():
                raise ModelFileError(
                    f"{self.path}: the tensor {name!r} is said to be in {file!r}; only files beside it are opened",
                    str(self.path),
                )
        self._shard_of: dict[str, str] = names
        self._shards: dict[str, SafeTensorsFile] = {}

    @classmethod
    def of(cls, files: Sequence[Path]) -> ShardedSafeTensorsFile:
        """All parts of a model that has no index. Raises ModelFileError where two have the same tensor."""
        self = cls.__new__(cls)
        self.path, self._shard_of, self._shards = files[0].parent, {}, {}
        try:
            for file in files:
                self._shards[file.name] = shard = SafeTensorsFile(file)
                for name in shard.tensor_names:
                    if name in self._shard_of:
                        other = self._shard_of[name]
                        raise ModelFileError(f"{file}: the tensor {name!r} is in {other}, too", str(file))
                    self._shard_of[name] = file.name
        except BaseException:
            self.close()
            raise
        return self

    @property
    def tensor_names(self) -> list[str]:
        """The names, in the index's order."""
        return list(self._shard_of)

    @property
    def file_size(self) -> int:
        """Bytes of all files together."""
        return sum(self._shard(file).file_size for file in dict.fromkeys(self._shard_of.values()))

    @property
    def num_tensors(self) -> int:
        """Number of tensors."""
        return len(self._shard_of)

    def tensor_info(self, name: str) -> TensorInfo:
        """The entry of a tensor in its file. Raises KeyError where the index does not name it."""
        return self._holder(name).tensor_info(name)

    def array(self, name: str) -> Array:
        """The values as a read-only view of their file; bfloat16 and 8-bit floats as their bits."""
        return self._holder(name).array(name)

    def tensor_bytes(self, name: str) -> bytes:
        """A copy of the stored bytes."""
        return self._holder(name).tensor_bytes(name)

    def tensor_as_f32(self, name: str) -> Array:
        """The values as float32, of the tensor's shape. A copy, also where they are stored so."""
        return self._holder(name).tensor_as_f32(name)

    def tensor_data_ptr(self, name: str) -> tuple[int, int]:
        """Address and bytes of the tensor in its mapped file; valid until close()."""
        return self._holder(name).tensor_data_ptr(name)

    def close(self) -> None:
        """Let go of all files. What was read stays valid."""
        for shard in self._shards.values():
            shard.close()

    def _holder(self, name: str) -> SafeTensorsFile:
        file = self._shard_of.get(name)
        if file is None:
            raise KeyError(f"{self.path} has no tensor {name!r}; it has {self.num_tensors}, see tensor_names")
        shard = self._shard(file)
        if name not in shard:
            raise ModelFileError(
                f"{self.path}: the tensor {name!r} is said to be in {file}, which does not have it", str(self.path)
            )
        return shard

    def _shard(self, file: str) -> SafeTensorsFile:
        if file not in self._shards:
            path = self.path.parent / file
            if not path.is_file():
                raise ModelFileError(f"{self.path}: it names {file}, which is not beside it", str(self.path))
            self._shards[file] = SafeTensorsFile(path)
        return self._shards[file]

    def __len__(self) -> int:
        return self.num_tensors

    def __contains__(self, name: object) -> bool:
        return name in self._shard_of


def load_safetensors(path: str | os.PathLike[str]) -> SafeTensorsFile | ShardedSafeTensorsFile:
    """A .safetensors file, an index (.json), or a folder that holds either.

    Raises ModelFileError for a malformed file and for a folder that has neither, OSError where nothing is there.
    """
    path = Path(path)
    if path.is_dir():
        path, *others = weights_of(path)
        if others:
            return ShardedSafeTensorsFile.of([path, *others])
    return ShardedSafeTensorsFile(path) if path.suffix == ".json" else SafeTensorsFile(path)


def weights_of(folder: Path) -> list[Path]:
    """The files of a folder to open: its model.safetensors, else its index, else its only .safetensors file, or all
    parts of one model by their names. Raises ModelFileError."""
    for name in ("model.safetensors", "model.safetensors.index.json"):
        if (folder / name).is_file():
            return [folder / name]
    files = visible(folder, "*.safetensors")
    parts = [_PART.fullmatch(file.name) for file in files]
    families = {(part[1], int(part[3])) if part else None for part in parts}
    first = parts[0] if len(families) == 1 else None
    if first is not None:
        names = [
            f"{first[1]}-{number:05d}-of-{first[3]}.safetensors"
            for number in range(1, min(int(first[3]), _MAX_PARTS) + 1)
        ]
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            some = ", ".join(missing[:5])
            raise ModelFileError(
                f"{folder}: of the {int(first[3])} parts of {first[1]} are missing: {some}", str(folder)
            )
        return [folder / name for name in names]
    if len(files) == 1:
        return files
    if files:
        listed = ", ".join(file.name for file in files)
        raise ModelFileError(
            f"{folder}: it has no model.safetensors.index.json and several files: {listed}", str(folder)
        )
    raise ModelFileError(f"{folder}: it has no .safetensors file", str(folder))


def visible(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder by their names, without hidden ones: macOS puts a `._name` beside a name it copies."""
    return sorted(file for file in folder.glob(pattern) if not file.name.startswith("."))


def _read_header(file: MappedFile) -> tuple[dict[str, str], dict[str, TensorInfo], int]:
    if file.size < 8:
        raise file.error(f"a safetensors file begins with 8 bytes of length, but this one has {file.size} bytes")
    length = int.from_bytes(file.bytes(0, 8), "little")
    if length > min(file.size - 8, _LONGEST_HEADER):
        raise file.error(f"the header is said to have {length} bytes, but the file has {file.size}")
    header = parse_object(file.bytes(8, length), f"{file.path} (header)")
    metadata = header.pop("__metadata__", None)
    metadata = {} if metadata is None else metadata  # null is none
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise file.error("its __metadata__ must be an object of texts")
    tensors = {name: _tensor(file, name, entry) for name, entry in header.items()}
    end = 0
    for info in sorted(tensors.values(), key=lambda item: (item.offset, item.size_bytes)):
        if info.offset != end:
            raise file.error(f"the tensor {info.name!r} begins at {info.offset}, but the one before it ends at {end}")
        end = info.offset + info.size_bytes
    if 8 + length + end != file.size:
        raise file.error(
            f"the tensors end at byte {8 + length + end}, but the file has {file.size}; it is cut or damaged"
        )
    return metadata, tensors, 8 + length


def _tensor(file: MappedFile, name: str, entry: Any) -> TensorInfo:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise file.error(f"the tensor {name!r} needs dtype, shape and data_offsets, and nothing else")
    spelling, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(spelling, str) or spelling not in _BY_SPELLING:
        raise file.error(f"the tensor {name!r} is of type {spelling!r}; what is read is {', '.join(_BY_SPELLING)}")
    if not _counts(shape) or not _counts(offsets) or len(offsets) != 2:
        raise file.error(f"the tensor {name!r} has shape {shape!r} and data_offsets {offsets!r}; those are no sizes")
    dtype = _BY_SPELLING[spelling]
    size = dtype.element_size
    for length in shape:
        size *= length
        if size > file.size:
            break
    if offsets[1] - offsets[0] != size:
        raise file.error(
            f"the tensor {name!r} of type {spelling} and shape {shape} does not fit its {offsets[1] - offsets[0]} bytes"
        )
    return TensorInfo(name, dtype, shape, offsets[0], size)


def _counts(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= 64
        and all(type(count) is int and 0 <= count < _INTEGER_LIMIT for count in value)
    )
