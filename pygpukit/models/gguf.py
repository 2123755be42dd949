"""GGUF files: a strict reader of versions 2 and 3. Lengths are checked against the file's size before they are used."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.models.dequantise import BLOCKS, UNREAD, Block
from pygpukit.models.mapped import MappedFile

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

MAGIC = b"GGUF"
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MIN_FIELD_BYTES, _MIN_TENSOR_BYTES = (
    8 + 4 + 1,
    8 + 4 + 4 + 8,
)  # bytes of the shortest entries
_MAX_DIMENSIONS = 4
# They bound what memory a file takes; the largest vocabularies have 300 000 tokens and twice as many merges.
_MAX_ENTRIES, _MAX_ITEMS, _LONGEST_TEXT = 1 << 17, 1 << 21, 16 << 20


@dataclass(frozen=True)
class GGUFTensor:
    """Where one tensor lies. shape is in NumPy's order, rows first; start is a position in the file."""

    shape: tuple[int, ...]
    block: Block
    start: int
    bytes: int


class GGUFFile:
    """The metadata of a file and the places of its tensors.

    fields: values by key; numbers, text, and lists of them. tensors: by GGUF's own names. Raises ModelFileError,
    which says what is wrong and where, for a file that is malformed or holds what is not read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.file = MappedFile(path)
        try:
            self._at, self._left = 0, _MAX_ITEMS
            count = self._header()
            self.fields: dict[str, Any] = {}
            for _ in range(self._count("metadata entries", _MIN_FIELD_BYTES)):
                key = self._text("a metadata key")
                if key in self.fields:
                    raise self.file.error(f"the metadata key {key!r} is there twice")
                self.fields[key] = self._value(self._number("I"), key)
            self.tensors = self._tensors(count)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()

    def holder(self, name: str) -> GGUFFile:
        """The file that has a tensor: this one."""
        return self

    def read(self, name: str) -> Array:
        """A tensor's values: float32, or as they are stored where that is float32, float16 or bfloat16 (its bits)."""
        tensor = self.tensors[name]
        return tensor.block.values(self.file, tensor.start, tensor.shape)

    def stored(self, name: str) -> Array:
        """A matrix's rows as they lie in the file: uint8 (rows, bytes of a row), plain floats as read() has them."""
        tensor = self.tensors[name]
        if tensor.block.decode is None:
            return self.read(name)
        rows = tensor.shape[0]
        return self.file.array(np.uint8, (rows, tensor.bytes // max(rows, 1)), tensor.start)

    def _header(self) -> int:
        if self.file.bytes(0, min(4, self.file.size)) != MAGIC:
            raise self.file.error("this is no GGUF file: it does not begin with 'GGUF'")
        self._at = 4
        version = self._number("I")
        if version not in (2, 3):
            big = int.from_bytes(version.to_bytes(4, "little"), "big") in (2, 3)
            what = "big-endian" if big else f"version {version} of GGUF"
            raise self.file.error(f"{what} is not read; convert it to version 3, little-endian")
        return self._count("tensors", _MIN_TENSOR_BYTES)

    def _tensors(self, count: int) -> dict[str, GGUFTensor]:
        tensors: dict[str, tuple[tuple[int, ...], Block, int]] = {}
        for _ in range(count):
            name = self._text("a tensor's name")
            if name in tensors:
                raise self.file.error(f"the tensor {name!r} is there twice")
            dimensions = self._number("I")
            if dimensions > _MAX_DIMENSIONS:
                raise self.file.error(f"the tensor {name!r} has {dimensions} dimensions; at most 4 are possible")
            shape = tuple(self._number("Q") for _ in range(dimensions))[::-1]
            kind = self._number("I")
            if kind not in BLOCKS:
                what = UNREAD.get(kind, f"type {kind}")
                known = ", ".join(block.name for block in BLOCKS.values())
                raise self.file.error(f"the tensor {name!r} is stored as {what}; what is read is {known}")
            tensors[name] = (shape, BLOCKS[kind], self._number("Q"))
        return self._placed(tensors)

    def _placed(self, tensors: dict[str, tuple[tuple[int, ...], Block, int]]) -> dict[str, GGUFTensor]:
        align = self.fields.get("general.alignment", 32)
        if type(align) is not int or not 8 <= align <= 1 << 20 or align & (align - 1):
            raise self.file.error(f"general.alignment is {align!r}; it must be a power of two from 8 on")
        begin = -(-self._at // align) * align
        placed = {}
        for name, (shape, block, offset) in tensors.items():
            if shape and shape[-1] % block.elements:
                raise self.file.error(
                    f"the tensor {name!r} has rows of {shape[-1]}, which {block.name} cannot hold: it has "
                    f"blocks of {block.elements}"
                )
            size = block.size(shape)
            if offset % align or begin + offset + size > self.file.size:
                raise self.file.error(
                    f"the tensor {name!r} (offset {offset}, {size} bytes) is not within the file of {self.file.size} "
                    f"bytes, or not at a multiple of {align}; the file is cut or damaged"
                )
            placed[name] = GGUFTensor(shape, block, begin + offset, size)
        end, last = 0, ""
        for name, tensor in sorted(placed.items(), key=lambda item: (item[1].start, item[1].bytes)):
            if tensor.start < end:
                raise self.file.error(f"the tensors {last!r} and {name!r} overlap")
            end, last = tensor.start + tensor.bytes, name
        return placed

    def _value(self, kind: int, key: str) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _STRING:
            return self._text(key)
        if kind != _ARRAY:
            raise self.file.error(f"the metadata {key!r} is of type {kind}, which GGUF does not have")
        items = self._number("I")
        if items == _STRING:
            return self._texts(self._count(key, 8), key)
        if items not in _NUMBERS:
            raise self.file.error(f"the metadata {key!r} is a list of type {items}, which is not read")
        form = _NUMBERS[items]
        size = struct.calcsize("<" + form)
        count = self._count(key, size)
        self._take(count)
        return list(self._unpack(f"<{count}{form}"))

    def _take(self, count: int) -> None:
        """So many items of a list, of those that a file may have."""
        self._left -= count
        if self._left < 0:
            raise self.file.error(f"its lists have more than {_MAX_ITEMS} items; no more are read")

    def _count(self, what: str, minimum: int) -> int:
        count = self._number("Q")
        if minimum in (_MIN_FIELD_BYTES, _MIN_TENSOR_BYTES) and count > _MAX_ENTRIES:
            raise self.file.error(f"it says that it has {count} {what}; at most {_MAX_ENTRIES} are read")
        if count * minimum > self.file.size - self._at:
            raise self.file.error(f"it cannot hold {count} {what}: {self.file.size - self._at} bytes are left")
        return int(count)

    def _text(self, what: str) -> str:
        count = self._count(f"bytes of {what}", 1)
        if count > _LONGEST_TEXT:
            raise self.file.error(f"{what} has {count} bytes; at most {_LONGEST_TEXT} are read")
        raw = self.file.bytes(self._at, count)
        self._at += count
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.file.error(f"{what} is no UTF-8 text ({error.reason} at byte {error.start})") from None

    def _texts(self, count: int, what: str) -> list[str]:
        """Many texts, as _text() one by one: vocabularies have some 10^5."""
        self._take(count)
        at, end, data, length = self._at, self.file.size, self.file.buffer(), struct.Struct("<Q").unpack_from
        texts = []
        try:
            for _ in range(count):
                begin = at + 8
                at = begin + length(data, at)[0]
                if at > end:
                    raise self.file.error(f"{what} has a text that ends at byte {at}, but the file has {end}")
                texts.append(data[begin:at].decode())
        except struct.error:
            raise self.file.error(f"{what} ends within a text") from None
        except UnicodeDecodeError as error:
            raise self.file.error(f"{what} is no UTF-8 text ({error.reason} at byte {error.start})") from None
        self._at = at
        return texts

    def _number(self, form: str) -> Any:
        return self._unpack("<" + form)[0]

    def _unpack(self, form: str) -> tuple[Any, ...]:
        size = struct.calcsize(form)
        raw = self.file.bytes(self._at, size)
        self._at += size
        return struct.unpack(form, raw)
