"""ONNX files, as far as weights need them: the graph's nodes and initialisers. Nothing of the graph is run."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.models import protobuf
from pygpukit.models.mapped import MappedFile
from pygpukit.models.protobuf import BYTES, VARINT, Message, signed

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

# onnx.proto3: TensorProto.DataType, as NumPy types.
_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
_BYTES = {"bool": 1} | {name: int(name.lstrip("uintfloa")) // 8 for name in _TYPES.values() if name != "bool"}
# Field numbers of onnx.proto3.
_GRAPH = 7
_NODE, _INITIALIZER = 1, 5
_INPUT, _OUTPUT, _NAME, _OP, _ATTRIBUTE = 1, 2, 3, 4, 5
_DIMS, _TYPE, _FLOATS, _INT32S, _INT64S, _TENSOR_NAME, _RAW, _DOUBLES, _LOCATION = 1, 2, 4, 5, 7, 8, 9, 10, 14
_PLAIN = (_FLOATS, _DOUBLES)  # values outside of raw_data that lie there as they are


@dataclass(frozen=True)
class Node:
    """One operation of the graph. attributes: the integers, numbers and lists of integers among them."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, int | float | tuple[int, ...]]


@dataclass(frozen=True)
class _Tensor:
    shape: tuple[int, ...]
    dtype: str
    at: int  # of the bytes, or -1 where values holds them
    values: tuple[int, ...] = ()


class OnnxFile:
    """An ONNX model: `nodes` in the file's order, and tensors by name.

    Raises ModelFileError where the file is no ONNX model, is cut off, or keeps its weights in files of their own.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = MappedFile(path)
        nodes: list[Node] = []
        self._tensors: dict[str, _Tensor] = {}
        graphs = [(at, end) for number, kind, at, end in self._all() if number == _GRAPH and kind == BYTES]
        if len(graphs) != 1:
            raise self._file.error(f"it has {len(graphs)} graphs; an ONNX model has one")
        for number, kind, at, end in Message(self._file, *graphs[0]).fields():
            if kind == BYTES and number == _NODE:
                nodes.append(self._node(at, end))
            elif kind == BYTES and number == _INITIALIZER:
                name, tensor = self._tensor(at, end)
                self._tensors[name] = tensor
        self.nodes = tuple(nodes)

    def names(self) -> tuple[str, ...]:
        """The initialisers."""
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """An initialiser's shape. Raises KeyError for a name that is not there."""
        return self._tensors[name].shape

    def array(self, name: str) -> Array:
        """An initialiser's values, possibly a read-only view of the file. Raises KeyError for an unknown name."""
        import numpy as np

        tensor = self._tensors[name]
        if tensor.at < 0:
            return np.array(tensor.values, np.int64).astype(tensor.dtype).reshape(tensor.shape)
        return self._file.array(tensor.dtype, tensor.shape, tensor.at)

    def close(self) -> None:
        """Let go of the file. What was read stays valid."""
        self._file.close()

    def _all(self) -> Any:
        return Message(self._file, 0, self._file.size).fields()

    def _text(self, at: int, end: int) -> str:
        return self._file.bytes(at, end - at).decode("utf-8", "replace")

    def _node(self, start: int, stop: int) -> Node:
        texts: dict[int, list[str]] = {_INPUT: [], _OUTPUT: [], _NAME: [""], _OP: [""]}
        attributes: dict[str, int | float | tuple[int, ...]] = {}
        for number, kind, at, end in Message(self._file, start, stop).fields():
            if kind == BYTES and number in texts:
                texts[number].append(self._text(at, end))
            elif kind == BYTES and number == _ATTRIBUTE:
                attributes |= self._attribute(at, end)
        return Node(texts[_OP][-1], texts[_NAME][-1], tuple(texts[_INPUT]), tuple(texts[_OUTPUT]), attributes)

    def _attribute(self, start: int, stop: int) -> dict[str, int | float | tuple[int, ...]]:
        name, scalar, integers = "", None, []  # type: str, int | float | None, list[int]
        message = Message(self._file, start, stop)
        for number, kind, at, end in message.fields():
            if number == 1 and kind == BYTES:
                name = self._text(at, end)
            elif number == 2 and kind == protobuf.FIXED32:
                scalar = struct.unpack("<f", self._file.bytes(at, 4))[0]
            elif number == 3 and kind == VARINT:
                scalar = signed(at)
            elif number == 8:
                integers += [signed(at)] if kind == VARINT else list(message.varints(at, end))
        if scalar is None:
            return {name: tuple(integers)} if integers else {}
        return {name: scalar}

    def _tensor(self, start: int, stop: int) -> tuple[str, _Tensor]:
        name, code, where, integers = "", 0, None, []  # type: str, int, tuple[int, int] | None, list[int]
        dims: list[int] = []
        message = Message(self._file, start, stop)
        for number, kind, at, end in message.fields():
            if number == _DIMS:
                dims += [signed(at)] if kind == VARINT else list(message.varints(at, end))
            elif number == _TYPE and kind == VARINT:
                code = at
            elif number == _TENSOR_NAME and kind == BYTES:
                name = self._text(at, end)
            elif number == _LOCATION and kind == VARINT and at:
                raise self._file.error("its weights are in files of their own; take an ONNX model of one file")
            elif number in (_RAW, *_PLAIN) and kind == BYTES:
                where = at, end
            elif number in (_INT32S, _INT64S):
                integers += [signed(at)] if kind == VARINT else list(message.varints(at, end))
            elif number in _PLAIN:  # one value that was not packed
                where = at, end
        return name, self._placed(name, code, tuple(dims), where, tuple(integers))

    def _placed(
        self, name: str, code: int, dims: tuple[int, ...], where: tuple[int, int] | None, integers: tuple[int, ...]
    ) -> _Tensor:
        if code not in _TYPES:
            raise self._file.error(f"the tensor {name!r} has the data type {code}, which is not read")
        count = 1
        for extent in dims:
            if extent < 0:
                raise self._file.error(f"the tensor {name!r} has the extent {extent}")
            count *= extent
        if where is None:
            if code == 10 and integers:
                raise self._file.error(f"the tensor {name!r} keeps float16 as integers, which is not read")
            if len(integers) != count:
                raise self._file.error(f"the tensor {name!r} has {len(integers)} values, its shape {dims} {count}")
            return _Tensor(dims, _TYPES[code], -1, integers)
        size = _BYTES[_TYPES[code]] * count
        if where[1] - where[0] != size:
            raise self._file.error(f"the tensor {name!r} has {where[1] - where[0]} bytes, its shape {dims} {size}")
        return _Tensor(dims, _TYPES[code], where[0])
