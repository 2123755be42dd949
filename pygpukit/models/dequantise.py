"""GGUF's tensor types as numbers: plain floats, and blocks of 2 to 8 bits with their scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pygpukit.core.dtypes import DataType, bfloat16, float16, float32
from pygpukit.models.mapped import MappedFile

Array = np.ndarray[Any, Any]
MXFP4 = "MXFP4 of GGUF"  # the same numbers as MXFP4 of folders, in another order
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

    def row_bytes(self, columns: int) -> int:
        """Bytes of a row of so many columns, whose last block may be part of one."""
        return -(-columns // self.elements) * self.bytes

    def values(self, file: MappedFile, start: int, shape: tuple[int, ...]) -> Array:
        """The values of a tensor that begins there."""
        if self.decode is None:
            return file.array(self.dtype.to_numpy_dtype(), shape, start)
        return self.decoded(file.array(np.uint8, (self.size(shape) // self.bytes, self.bytes), start)).reshape(shape)

    def decoded(self, blocks: Array) -> Array:
        """Values of blocks, (blocks, bytes) of uint8: float32 (blocks, elements)."""
        if self.decode is None:
            raise TypeError(f"{self.name} has no blocks")
        result = np.empty((len(blocks), self.elements), np.float32)
        step = _CHUNK // self.elements
        with np.errstate(all="ignore"):  # a scale may be infinite
            for first in range(0, len(blocks), step):
                part = slice(first, first + step)
                result[part] = self.decode(blocks[part])
        return result


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


def _fifths(packed: Array) -> Array:
    """32 bits a block as the fifth bits of its codes."""
    bits = np.ascontiguousarray(packed).view("<u4") >> np.arange(32, dtype=np.uint32)
    return (bits & 1).astype(np.uint8) << 4


def _q5_0(blocks: Array) -> Array:
    values = (_nibbles(blocks[:, 6:]) | _fifths(blocks[:, 2:6])).astype(np.float32)
    values -= 16
    values *= _half(blocks[:, :2])
    return values


def _q5_1(blocks: Array) -> Array:
    values = (_nibbles(blocks[:, 8:]) | _fifths(blocks[:, 4:8])).astype(np.float32)
    values *= _half(blocks[:, :2])
    values += _half(blocks[:, 2:4])
    return values


def _q8_0(blocks: Array) -> Array:
    values = blocks[:, 2:].view(np.int8).astype(np.float32)
    values *= _half(blocks[:, :2])
    return values


def _pairs(packed: Array) -> Array:
    """Each byte's four codes of two bits: those of the lowest bits of 32 bytes, then the next."""
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    return packed.reshape(len(packed), -1, 1, 32) >> shifts & 3


def _q2_k(blocks: Array) -> Array:
    """Sixteen groups of 16, each with a scale and a minimum of four bits."""
    scale, minimum = _half(blocks[:, 80:82]), _half(blocks[:, 82:84])
    scales, leasts = scale * (blocks[:, :16] & 15), minimum * (blocks[:, :16] >> 4)
    codes = _pairs(blocks[:, 16:80]).reshape(-1, 16, 16)
    return (scales[:, :, None] * codes - leasts[:, :, None]).reshape(-1, 256)


def _q3_k(blocks: Array) -> Array:
    """Sixteen groups of 16 with signed scales of six bits; a code is four less where its bit of the mask is not set."""
    packed = blocks[:, 96:108]
    low = _nibbles(packed[:, :8])
    high = (packed[:, None, 8:] >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 4, 1) & 3).reshape(-1, 16)
    scales = _half(blocks[:, 108:110]) * ((low | high << 4).view(np.int8) - np.int8(32))
    mask = blocks[:, None, :32] >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1) & 1
    codes = _pairs(blocks[:, 32:96]).reshape(-1, 8, 32).view(np.int8) - ((mask ^ 1) << 2).view(np.int8)
    return (scales[:, :, None] * codes.reshape(-1, 16, 16)).reshape(-1, 256)


def _scaled(blocks: Array, codes: Array) -> Array:
    """Eight groups of 32 codes, each with a scale and a minimum of six bits."""
    scale, minimum = _half(blocks[:, 0:2]), _half(blocks[:, 2:4])
    low, mid, high = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.concatenate([low & 63, (high & 15) | ((low >> 6) << 4)], axis=1)
    leasts = np.concatenate([mid & 63, (high >> 4) | ((mid >> 6) << 4)], axis=1)
    values = (scale * scales)[:, :, None] * codes - (minimum * leasts)[:, :, None]
    return values.reshape(-1, 256)


def _q4_k(blocks: Array) -> Array:
    """Two groups share 32 bytes."""
    return _scaled(blocks, _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32))


def _q5_k(blocks: Array) -> Array:
    """As Q4_K; the fifth bits of all groups share 32 bytes."""
    low = _nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    high = blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1) & 1
    return _scaled(blocks, low | high << 4)


def _q6_k(blocks: Array) -> Array:
    """Sixteen groups of 16 with signed scales. A code's low four bits and its high two are apart."""
    low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1) & 3
    codes = (low | high << 4).view(np.int8) - np.int8(32)
    scales = _half(blocks[:, 208:210]) * np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
    return (scales[:, :, None] * codes.reshape(-1, 16, 16)).reshape(-1, 256)


_UNEVEN = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def _iq4_nl(blocks: Array) -> Array:
    """A code is the place of one of sixteen values, denser around zero."""
    return _half(blocks[:, :2]) * _UNEVEN[_nibbles(blocks[:, 2:])]


def _iq4_xs(blocks: Array) -> Array:
    """IQ4_NL's values, in eight groups of 32 with signed scales of six bits."""
    low = (blocks[:, 4:8, None] >> np.array([0, 4], np.uint8) & 15).reshape(-1, 8)
    high = np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    scales = _half(blocks[:, :2]) * ((low | high.astype(np.uint8) << 4).view(np.int8) - np.int8(32))
    codes = _nibbles(blocks[:, 8:].reshape(-1, 8, 16))
    return (scales[:, :, None] * _UNEVEN[codes]).reshape(-1, 256)


_DOUBLED_FP4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


def _mxfp4(blocks: Array) -> Array:
    """The power of two is kept as its exponent, of which llama.cpp takes half, and numbers twice as large."""
    exponents = blocks[:, :1].astype(np.uint32)
    halves = np.where(exponents < 2, np.uint32(0x200000) << exponents, exponents - 1 << 23).astype(np.uint32)
    return halves.view(np.float32) * _DOUBLED_FP4[_nibbles(blocks[:, 1:])]


# By GGUF's numbers.
BLOCKS = {
    0: Block("F32", 1, 4, float32),
    1: Block("F16", 1, 2, float16),
    2: Block("Q4_0", 32, 18, float32, _q4_0),
    3: Block("Q4_1", 32, 20, float32, _q4_1),
    6: Block("Q5_0", 32, 22, float32, _q5_0),
    7: Block("Q5_1", 32, 24, float32, _q5_1),
    8: Block("Q8_0", 32, 34, float32, _q8_0),
    10: Block("Q2_K", 256, 84, float32, _q2_k),
    11: Block("Q3_K", 256, 110, float32, _q3_k),
    12: Block("Q4_K", 256, 144, float32, _q4_k),
    13: Block("Q5_K", 256, 176, float32, _q5_k),
    14: Block("Q6_K", 256, 210, float32, _q6_k),
    20: Block("IQ4_NL", 32, 18, float32, _iq4_nl),
    23: Block("IQ4_XS", 256, 136, float32, _iq4_xs),
    30: Block("BF16", 1, 2, bfloat16),
    39: Block(MXFP4, 32, 17, float32, _mxfp4),
}
UNREAD = {9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S"}
UNREAD |= {24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0"}
UNREAD |= {40: "NVFP4", 41: "Q1_0"}


def named(name: str) -> Block:
    """The type of that name, GGUF's or of folders in blocks. Raises KeyError."""
    from pygpukit.models.quantised.blocks import BLOCKS as OF_FOLDERS

    return OF_FOLDERS.get(name) or {block.name: block for block in BLOCKS.values()}[name]
