"""GGUF's tensor types as numbers: plain floats, and blocks of 4, 6 and 8 bits with their scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pygpukit.core.dtypes import DataType, bfloat16, float16, float32
from pygpukit.models.mapped import MappedFile

Array = np.ndarray[Any, Any]
_CHUNK = 1 << 16  # elements; what is made on the way stays in the processor's cache


@dataclass(frozen=True)
class Block:
    """A tensor type: so many elements in so many bytes, and the type they are read as."""

    name: str
    elements: int
    bytes: int
    dtype: DataType
    decode: Callable[[Array], Array] | None = None  # (blocks, bytes) of uint8 -> (blocks, elements) of float32

    def size(self, shape: tuple[int, ...]) -> int:
        """Bytes of a tensor of that shape."""
        count = 1
        for length in shape:
            count *= length
        return count // self.elements * self.bytes

    def values(self, file: MappedFile, start: int, shape: tuple[int, ...]) -> Array:
        """The values of a tensor that begins there."""
        if self.decode is None:
            return file.array(self.dtype.to_numpy_dtype(), shape, start)
        blocks = file.array(np.uint8, (self.size(shape) // self.bytes, self.bytes), start)
        result = np.empty((len(blocks), self.elements), np.float32)
        step = _CHUNK // self.elements
        with np.errstate(all="ignore"):  # a scale may be infinite
            for first in range(0, len(blocks), step):
                part = slice(first, first + step)
                result[part] = self.decode(blocks[part])
        return result.reshape(shape)


def _half(columns: Array) -> Array:
    """Two bytes a row as float32, a column."""
    return np.ascontiguousarray(columns).view(np.float16).astype(np.float32)


def _nibbles(packed: Array) -> Array:
    """The low halves of the bytes, then the high halves."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def _q4_0(blocks: Array) -> Array:
    values = _nibbles(blocks[:, 2:]).astype(np.float32)
    values -= 8
    values *= _half(blocks[:, :2])
    return values


def _q4_1(blocks: Array) -> Array:
    values = _nibbles(blocks[:, 4:]).astype(np.float32)
    values *= _half(blocks[:, :2])
    values += _half(blocks[:, 2:4])
    return values


def _q8_0(blocks: Array) -> Array:
    values = blocks[:, 2:].view(np.int8).astype(np.float32)
    values *= _half(blocks[:, :2])
    return values


def _q4_k(blocks: Array) -> Array:
    """Eight groups of 32, each with a scale and a minimum of six bits; two groups share 32 bytes."""
    scale, least = _half(blocks[:, 0:2]), _half(blocks[:, 2:4])
    low, mid, high = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.concatenate([low & 63, (high & 15) | ((low >> 6) << 4)], axis=1)
    leasts = np.concatenate([mid & 63, (high >> 4) | ((mid >> 6) << 4)], axis=1)
    packed = blocks[:, 16:].reshape(-1, 4, 32)
    codes = _nibbles(packed).reshape(-1, 8, 32)
    values = (scale * scales)[:, :, None] * codes - (least * leasts)[:, :, None]
    return values.reshape(-1, 256)


def _q6_k(blocks: Array) -> Array:
    """Sixteen groups of 16 with signed scales. A code's low four bits and its high two are apart."""
    low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1) & 3
    codes = (low | high << 4).view(np.int8) - np.int8(32)
    scales = _half(blocks[:, 208:210]) * np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
    return (scales[:, :, None] * codes.reshape(-1, 16, 16)).reshape(-1, 256)


# By GGUF's numbers.
BLOCKS = {
    0: Block("F32", 1, 4, float32),
    1: Block("F16", 1, 2, float16),
    2: Block("Q4_0", 32, 18, float32, _q4_0),
    3: Block("Q4_1", 32, 20, float32, _q4_1),
    8: Block("Q8_0", 32, 34, float32, _q8_0),
    12: Block("Q4_K", 256, 144, float32, _q4_k),
    14: Block("Q6_K", 256, 210, float32, _q6_k),
    30: Block("BF16", 1, 2, bfloat16),
}
UNREAD = {6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 13: "Q5_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS"}
UNREAD |= {18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16"}
UNREAD |= {26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4"}
