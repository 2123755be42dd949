"""Whole numbers of few bits in words of 32: GPTQ's, AWQ's and compressed-tensors' weights.

Each is (code - zero) * scale. The product of a code of 8 bits and a scale of 16 is exact in float32; rounded to the
type of the scale it has the bits that the packages give.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.dtypes import bfloat16, float16, int32, int64
from pygpukit.models.quantised.blocks import longest, of_fours, of_ints
from pygpukit.models.quantised.tensors import SCALES, Tensors
from pygpukit.models.stored import Stored

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_WORD = 32  # bits
_CHUNK = 1 << 18  # elements; what is made on the way stays in the processor's cache
_MIDDLE = np.uint8(128)  # of codes of 8 bits, which blocks have with a sign
_AWQ_PLACES = (0, 4, 1, 5, 2, 6, 3, 7)  # in a word, of the codes of eight neighbours


def codes(words: Array, bits: int, count: int) -> Array:
    """Codes along the last axis: number i begins at bit i * bits, the lowest bits of the first word first.

    words: int32 (..., at least count * bits / 32). Gives uint8 (..., count).
    """
    words = words.view(np.uint32)
    periods = -(-count // _WORD)
    missing = periods * bits - words.shape[-1]
    if missing > 0:
        words = np.concatenate([words, np.zeros((*words.shape[:-1], missing), np.uint32)], axis=-1)
    result = np.empty((*words.shape[:-1], periods * _WORD), np.uint8)
    for number in range(_WORD):
        word, start = divmod(number * bits, _WORD)
        code = words[..., word : periods * bits : bits] >> np.uint32(start)
        if start + bits > _WORD:
            code = code | words[..., word + 1 : periods * bits : bits] << np.uint32(_WORD - start)
        result[..., number::_WORD] = code & np.uint32((1 << bits) - 1)
    return result[..., :count]


# Codes (out, in), codes of zero and scales (out, groups), and the group of each column.
Parts = tuple["Array", "Array | int", "Array", "Array"]


def _scaled(code: Array, zero: Array | int, scale: Array, group: Array) -> Array:
    """(code - zero) * scale. code: (out, in); zero, scale: (out, groups); group: the group of each column."""
    values = np.empty(code.shape, np.float32)
    step = max(_CHUNK // code.shape[1], 1)
    with np.errstate(all="ignore"):
        for first in range(0, len(code), step):
            rows = slice(first, first + step)
            values[rows] = code[rows]
            values[rows] -= np.float32(zero) if isinstance(zero, int) else zero[rows].astype(np.float32)[:, group]
            values[rows] *= scale[rows][:, group]
    return values


def _groups(stored: Tensors, name: str, columns: int, count: int) -> Array:
    """The group of each column: as a tensor says, or neighbours."""
    _check_count(stored, name, columns, count)
    if name not in stored.names:
        return np.arange(columns) // -(-columns // count)
    stored.check(name, int32, (columns,))
    group = stored.read(name)
    if group.min() < 0 and (group == -1).all():  # written where nothing was ordered
        return np.arange(columns) // -(-columns // count)
    if group.min() < 0 or group.max() >= count:
        raise stored.error(f"{name!r} names groups of {group.min()} to {group.max()}, but there are {count}")
    return group


def _check_count(stored: Tensors, name: str, columns: int, count: int) -> None:
    """Raises ModelFileError where there are more groups than columns, or groups that no column is of."""
    if count > columns or -(-columns // -(-columns // count)) != count:
        raise stored.error(f"the weight of {name!r} has {count} groups of scales for {columns} columns")


class _Words(ABC):
    """The values and blocks of such weights, from their parts."""

    @abstractmethod
    def check(self, stored: Tensors) -> None:
        """As Weight.check(); the order of columns is read."""

    @abstractmethod
    def parts(self, stored: Tensors) -> Parts:
        """Codes, scales and what else the values are made of."""

    @abstractmethod
    def scale(self, stored: Tensors) -> tuple[str, int]:
        """The tensor with the scales, and how many a row has."""

    @abstractmethod
    def shape(self, stored: Tensors) -> tuple[int, ...]:
        """Of the weight."""

    def values(self, stored: Tensors) -> Array:
        return _scaled(*self.parts(stored))

    def in_blocks(self, stored: Tensors, bits: int, group: Array) -> Stored | None:
        """Of codes of four or eight bits, columns in the order of their groups, where these are of one size."""
        name, count = self.scale(stored)
        columns = self.shape(stored)[1]
        size = None if columns % count else longest(columns // count)
        if size is None or bits not in (4, 8) or stored.dtype(name) not in (float16, bfloat16):
            return None
        values, order = size, np.argsort(group, kind="stable").astype(np.int32)
        if (group[order] != np.arange(columns) // (columns // count)).any():
            return None
        is_ordered = bool((order == np.arange(columns)).all())

        def rows() -> Array:
            code, zero, scale, _ = self.parts(stored)
            code = np.ascontiguousarray(code if is_ordered else code[:, order])
            if bits == 4:
                return of_fours(code, zero, scale, values)
            code = (code ^ _MIDDLE).view(np.int8)
            return of_ints(code, np.broadcast_to(np.asarray(zero), scale.shape) - np.int16(_MIDDLE), scale, values)

        return Stored(f"{'I4' if bits == 4 else 'I8Z'}_{values}", rows, order=None if is_ordered else order)


@dataclass(frozen=True)
class GPTQ(_Words):
    """Columns are packed along `in`; zeros are stored less by `less`; with an order of columns of their own."""

    stem: str
    bits: int
    less: int

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(f"{self.stem}.{part}" for part in ("qweight", "qzeros", "scales", "g_idx"))

    @property
    def kind(self) -> str:
        return f"GPTQ of {self.bits} bits"

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        rows, out = stored.check(self.tensors[0], int32, (None, None))
        if rows * _WORD % self.bits:
            raise stored.error(f"{self.tensors[0]!r} has {rows} rows of words, which hold no codes of {self.bits} bits")
        return out, rows * _WORD // self.bits

    def check(self, stored: Tensors) -> None:
        _, zeros, scales, order = self.tensors
        out, columns = self.shape(stored)
        count, _ = stored.check(scales, SCALES, (None, out))
        stored.check(zeros, int32, (count, -(-out * self.bits // _WORD)))
        _groups(stored, order, columns, count)

    def parts(self, stored: Tensors) -> Parts:
        weight, zeros, scales, order = self.tensors
        (out, columns), (_, count) = self.shape(stored), self.scale(stored)
        code = codes(np.ascontiguousarray(stored.read(weight).T), self.bits, columns)
        zero = codes(stored.read(zeros), self.bits, out).T.astype(np.int16) + self.less
        return code, zero, stored.floats(scales).T, _groups(stored, order, columns, count)

    def scale(self, stored: Tensors) -> tuple[str, int]:
        name = self.tensors[2]
        return name, stored.shape(name)[0]

    def blocks(self, stored: Tensors) -> Stored | None:
        group = _groups(stored, self.tensors[3], self.shape(stored)[1], self.scale(stored)[1])
        return self.in_blocks(stored, self.bits, group)


@dataclass(frozen=True)
class AWQ(_Words):
    """Four bits, packed along `out`, eight neighbours a word in an order of their own."""

    stem: str

    kind = "AWQ of 4 bits"

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(f"{self.stem}.{part}" for part in ("qweight", "qzeros", "scales"))

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        columns, words = stored.check(self.tensors[0], int32, (None, None))
        return words * 8, columns

    def check(self, stored: Tensors) -> None:
        _, zeros, scales = self.tensors
        out, columns = self.shape(stored)
        count, _ = stored.check(scales, SCALES, (None, out))
        stored.check(zeros, int32, (count, out // 8))
        _check_count(stored, scales, columns, count)

    def parts(self, stored: Tensors) -> Parts:
        weight, zeros, scales = self.tensors
        columns, count = self.shape(stored)[1], self.scale(stored)[1]
        code, zero = (self._codes(stored.read(name)) for name in (weight, zeros))
        group = np.arange(columns) // -(-columns // count)
        return np.ascontiguousarray(code.T), zero.T, stored.floats(scales).T, group

    def scale(self, stored: Tensors) -> tuple[str, int]:
        name = self.tensors[2]
        return name, stored.shape(name)[0]

    def blocks(self, stored: Tensors) -> Stored | None:
        columns, count = self.shape(stored)[1], self.scale(stored)[1]
        return self.in_blocks(stored, 4, np.arange(columns) // -(-columns // count))

    def _codes(self, words: Array) -> Array:
        plain = codes(words, 4, words.shape[1] * 8).reshape(len(words), -1, 8)
        return plain[:, :, _AWQ_PLACES].reshape(len(words), -1)


@dataclass(frozen=True)
class Packed(_Words):
    """compressed-tensors' pack-quantized: packed along `in`, zeros along `out`, the middle of all codes being 0."""

    stem: str
    widths: tuple[int, ...]  # bits that the configuration names

    @property
    def tensors(self) -> tuple[str, ...]:
        parts = "weight_packed", "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx"
        return tuple(f"{self.stem}.{part}" for part in parts)

    @property
    def kind(self) -> str:
        return f"compressed-tensors of {' or '.join(map(str, self.widths))} bits"

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        stored.check(self.tensors[3], int64, (2,))
        out, columns = (int(extent) for extent in stored.read(self.tensors[3]))
        stored.check(self.tensors[0], int32, (out, None))
        return out, columns

    def check(self, stored: Tensors) -> None:
        _, scales, zeros, _, order = self.tensors
        out, columns = self.shape(stored)
        bits = self._bits(stored)
        count = 1
        if scales not in stored.names or stored.shape(scales) not in ((), (1,), (1, 1), (out,)):
            _, count = stored.check(scales, SCALES, (out, None))
        if zeros in stored.names:
            stored.check(zeros, int32, (-(-out * bits // _WORD), count))
        _groups(stored, order, columns, count)

    def _bits(self, stored: Tensors) -> int:
        """Of a code: those of which a row of words has as many as the weight columns."""
        columns, words = self.shape(stored)[1], stored.shape(self.tensors[0])[1]
        bits = next((width for width in self.widths if -(-columns * width // _WORD) == words), None)
        if bits is None:
            raise stored.error(f"{self.tensors[0]!r} has {words} words for {columns} columns of {self.kind}")
        return bits

    def parts(self, stored: Tensors) -> Parts:
        packed, scales, zeros, _, order = self.tensors
        (out, columns), bits = self.shape(stored), self._bits(stored)
        scale = stored.floats(scales)
        scale = np.broadcast_to(scale.reshape(1, 1), (out, 1)) if scale.size == 1 else scale.reshape(out, -1)
        middle = 1 << (bits - 1)
        zero: Array | int = middle
        if zeros in stored.names:
            zero = codes(np.ascontiguousarray(stored.read(zeros).T), bits, out).T
        group = _groups(stored, order, columns, scale.shape[1])
        return codes(stored.read(packed), bits, columns), zero, scale, group

    def scale(self, stored: Tensors) -> tuple[str, int]:
        shape = stored.shape(self.tensors[1])
        return self.tensors[1], shape[1] if len(shape) == 2 else 1

    def blocks(self, stored: Tensors) -> Stored | None:
        group = _groups(stored, self.tensors[4], self.shape(stored)[1], self.scale(stored)[1])
        return self.in_blocks(stored, self._bits(stored), group)
