"""Blocks that weights of folders become for products on a device: codes and their scales side by side in a row's bytes.

Their values are those of the tensors, by the bit. kernels/include/blocks_of_folders.cuh reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.dtypes import float8_e4m3, float32
from pygpukit.models.convert import convert
from pygpukit.models.dequantise import Block
from pygpukit.models.quantised.codes import numbers, powers

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_ZERO_BITS = np.uint32(0xFF)  # of a word whose other 24 bits are a float's highest
_NINE_BITS, _ABOVE_NINE = np.uint32(0x1FF), np.uint32(23)  # so of zeros with a sign, and how far up the sign is


def longest(extent: int) -> int | None:
    """The longest block, of 128 or 32 values, that divides what one scale is of; None where none does."""
    return next((values for values in (128, 32) if extent % values == 0), None)


def of_bytes(codes: Array, scale: Array) -> Array:
    """Blocks I8 and FP8. codes: (out, in) of uint8; scale: float32 (out, blocks). Gives uint8 (out, bytes)."""
    floats = codes.reshape(*scale.shape, -1)
    return _rows(scale.astype("<f4").view(np.uint8).reshape(*scale.shape, 4), floats)


def of_ints(codes: Array, zero: Array, scale: Array, values: int) -> Array:
    """Blocks I8Z. codes: int8 (out, in); zero: -256 to 255, scale of 16 bits: (out, groups)."""
    words = np.ascontiguousarray(scale, "<f4").view("<u4") | (zero.astype(np.int32) & 0x1FF).astype(np.uint32)
    words = np.repeat(words, codes.shape[1] // scale.shape[1] // values, axis=1)
    return _rows(words.view(np.uint8).reshape(*words.shape, 4), codes.view(np.uint8).reshape(*words.shape, values))


def of_fours(codes: Array, zero: Array | int, scale: Array, values: int) -> Array:
    """Blocks I4. codes: uint8 (out, in); zero, scale: (out, groups), scale of no more than 16 bits each."""
    out, columns = codes.shape
    zeros = np.broadcast_to(np.asarray(zero).astype(np.uint32), scale.shape)
    words = np.ascontiguousarray(scale, "<f4").view("<u4") | zeros
    words = np.repeat(words, columns // scale.shape[1] // values, axis=1)
    halves = codes.reshape(out, columns // values, values // 32, 2, 16)
    packed = halves[:, :, :, 0] | halves[:, :, :, 1] << np.uint8(4)
    return _rows(words.view(np.uint8).reshape(*words.shape, 4), packed.reshape(*words.shape, -1))


def of_nvfp4(packed: Array, steps: Array, overall: np.float32) -> Array:
    """Blocks NVFP4, zeros behind the last column. packed: uint8 (out, in / 2); steps: E4M3's codes (out, in / 16);
    overall: less than 0 to divide."""
    packed, steps = _whole(packed, 64), _whole(steps, 8)
    out, blocks = len(packed), packed.shape[1] // 64
    head = np.broadcast_to(np.array([overall], "<f4").view(np.uint8), (out, blocks, 4))
    return _rows(head, steps.reshape(out, blocks, 8), packed.reshape(out, blocks, 64))


def of_mxfp4(packed: Array, exponents: Array) -> Array:
    """Blocks MXFP4, zeros behind the last column. packed: uint8 (out, in / 2); exponents: uint8 (out, in / 32)."""
    packed, exponents = _whole(packed, 64), _whole(exponents, 4)
    out, blocks = len(packed), packed.shape[1] // 64
    return _rows(exponents.reshape(out, blocks, 4), packed.reshape(out, blocks, 64))


def of_gguf_mxfp4(rows: Array) -> Array:
    """Blocks MXFP4 of GGUF's: an exponent, and bytes of a code of the first 16 values with one of the last 16."""
    blocks = rows.reshape(len(rows), -1, 17)
    codes = np.concatenate([blocks[..., 1:] & 15, blocks[..., 1:] >> 4], axis=-1)
    packed = codes[..., ::2] | codes[..., 1::2] << np.uint8(4)
    return of_mxfp4(packed.reshape(len(rows), -1), blocks[..., 0])


def _whole(rows: Array, count: int) -> Array:
    """Rows of whole blocks of so many bytes: with zeros behind them, which are numbers of nothing."""
    return np.pad(rows, ((0, 0), (0, -rows.shape[1] % count)))


def _rows(*parts: Array) -> Array:
    blocks = np.concatenate([part.view(np.uint8) for part in parts], axis=-1)
    return blocks.reshape(len(blocks), -1)


def _float(blocks: Array) -> Array:
    return np.ascontiguousarray(blocks[:, :4]).view("<f4")


def _ints(blocks: Array) -> Array:
    return blocks[:, 4:].view(np.int8) * _float(blocks)


def _ints_with_zeros(blocks: Array) -> Array:
    words = np.ascontiguousarray(blocks[:, :4]).view("<u4")
    zero = (words << _ABOVE_NINE).view(np.int32) >> np.int32(_ABOVE_NINE)
    return (blocks[:, 4:].view(np.int8) - zero.astype(np.float32)) * (words & ~_NINE_BITS).view("<f4")


def _floats(blocks: Array) -> Array:
    return convert(np.ascontiguousarray(blocks[:, 4:]), float8_e4m3, float32) * _float(blocks)


def _fours(blocks: Array) -> Array:
    words = np.ascontiguousarray(blocks[:, :4]).view("<u4")
    packed = blocks[:, 4:].reshape(len(blocks), -1, 16)
    codes = np.concatenate([packed & 15, packed >> 4], axis=-1).reshape(len(blocks), -1)
    return (codes - (words & _ZERO_BITS).astype(np.float32)) * (words & ~_ZERO_BITS).view("<f4")


def _nvfp4(blocks: Array) -> Array:
    overall = _float(blocks)
    steps = convert(np.ascontiguousarray(blocks[:, 4:12]), float8_e4m3, float32)
    with np.errstate(all="ignore"):
        scale = np.where(overall < 0, steps / -overall, steps * overall)
    return numbers(blocks[:, 12:]) * np.repeat(scale, 16, axis=1)


def _mxfp4(blocks: Array) -> Array:
    return numbers(blocks[:, 4:]) * np.repeat(powers(blocks[:, :4]), 32, axis=1)


BLOCKS = {
    block.name: block
    for block in (
        Block("I8_32", 32, 36, float32, _ints),
        Block("I8_128", 128, 132, float32, _ints),
        Block("I8Z_32", 32, 36, float32, _ints_with_zeros),
        Block("I8Z_128", 128, 132, float32, _ints_with_zeros),
        Block("FP8_32", 32, 36, float32, _floats),
        Block("FP8_128", 128, 132, float32, _floats),
        Block("I4_32", 32, 20, float32, _fours),
        Block("I4_128", 128, 68, float32, _fours),
        Block("NVFP4", 128, 76, float32, _nvfp4),
        Block("MXFP4", 128, 68, float32, _mxfp4),
    )
}
