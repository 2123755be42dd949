"""Weights of fp4 (E2M1), two codes a byte, low bits first, with a scale for every block of a row.

NVFP4: blocks of 16 with E4M3 scales and one float for all, which compressed-tensors divides by and ModelOpt multiplies
with. MXFP4: blocks of 32 with powers of two; gpt-oss keeps those of its experts with the axes in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.dtypes import float8_e4m3, uint8
from pygpukit.models.quantised.tensors import Tensors

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_NUMBERS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def _numbers(packed: Array) -> Array:
    """(..., bytes) of uint8 as float32 (..., 2 * bytes)."""
    both = np.empty((*packed.shape, 2), np.float32)
    both[..., 0], both[..., 1] = _NUMBERS[packed & 15], _NUMBERS[packed >> 4]
    return both.reshape(*packed.shape[:-1], -1)


def powers(exponents: Array) -> Array:
    """2 to the exponents less 127; 255 is NaN."""
    powers = np.ldexp(np.float32(1), exponents.astype(np.int32) - 127)
    return np.where(exponents == 255, np.float32(np.nan), powers)


def _times(numbers: Array, scale: Array) -> Array:
    """Numbers (..., in) times scales (..., blocks) of neighbours."""
    blocks = numbers.reshape(*scale.shape, -1)
    with np.errstate(all="ignore"):
        blocks *= scale[..., None]
    return numbers


def _shape(stored: Tensors, packed: str, block: int) -> tuple[int, int]:
    """Of the values of a matrix."""
    out, width = stored.check(packed, uint8, (None, None))
    if 2 * width % block:
        raise stored.error(f"{packed!r} has {2 * width} columns, must be blocks of {block}")
    return out, 2 * width


@dataclass(frozen=True)
class NVFP4:
    """packed: the codes; overall: the scale of all; divides: whether that is divided by."""

    packed: str
    scale: str
    overall: str
    divides: bool

    kind = "NVFP4"

    @property
    def tensors(self) -> tuple[str, ...]:
        return self.packed, self.scale, self.overall

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        return _shape(stored, self.packed, 16)

    def values(self, stored: Tensors) -> Array:
        out, columns = self.shape(stored)
        stored.check(self.scale, float8_e4m3, (out, columns // 16))
        overall = stored.floats(self.overall)
        if overall.size != 1:
            raise stored.error(f"{self.overall!r} has {overall.size} elements, must be one scale of all")
        with np.errstate(all="ignore"):
            scale = stored.floats(self.scale)
            scale = scale / overall.reshape(()) if self.divides else scale * overall.reshape(())
        return _times(_numbers(stored.read(self.packed)), scale)


@dataclass(frozen=True)
class MXFP4:
    """packed: the codes; scale: the exponents."""

    packed: str
    scale: str

    kind = "MXFP4"

    @property
    def tensors(self) -> tuple[str, ...]:
        return self.packed, self.scale

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        return _shape(stored, self.packed, 32)

    def values(self, stored: Tensors) -> Array:
        out, columns = self.shape(stored)
        stored.check(self.scale, uint8, (out, columns // 32))
        return _times(_numbers(stored.read(self.packed)), powers(stored.read(self.scale)))


@dataclass(frozen=True)
class ExpertsMXFP4:
    """gpt-oss' experts: blocks (experts, out, blocks, 16) are values (experts, in, out)."""

    stem: str

    kind = "MXFP4"

    @property
    def tensors(self) -> tuple[str, ...]:
        return f"{self.stem}_blocks", f"{self.stem}_scales"

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        experts, out, blocks, _ = stored.check(self.tensors[0], uint8, (None, None, None, 16))
        return experts, 32 * blocks, out

    def values(self, stored: Tensors) -> Array:
        packed, scale = self.tensors
        experts, columns, out = self.shape(stored)
        stored.check(scale, uint8, (experts, out, columns // 32))
        numbers = _numbers(stored.read(packed).reshape(experts, out, columns // 2))
        return _times(numbers, powers(stored.read(scale))).swapaxes(1, 2)
