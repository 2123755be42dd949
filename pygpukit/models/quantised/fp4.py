"""Weights of fp4 (E2M1), two codes a byte, low bits first, with a scale for every block of a row.

NVFP4: blocks of 16 with E4M3 scales and one float for all, which compressed-tensors divides by and ModelOpt multiplies
with. MXFP4: blocks of 32 with powers of two; gpt-oss keeps those of its experts with the axes in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.dtypes import float8_e4m3, uint8
from pygpukit.models.quantised.codes import numbers, powers
from pygpukit.models.quantised.tensors import SCALES, Tensors
from pygpukit.models.stored import Stored

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

KERNEL_COLUMNS = 32  # kernels take so many at a time


def _times(values: Array, scale: Array) -> Array:
    """Values (..., in) times scales (..., blocks) of neighbours."""
    blocks = values.reshape(*scale.shape, -1)
    with np.errstate(all="ignore"):
        blocks *= scale[..., None]
    return values


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

    def check(self, stored: Tensors) -> None:
        out, columns = self.shape(stored)
        stored.check(self.scale, float8_e4m3, (out, columns // 16))
        if self.overall not in stored.names or stored.shape(self.overall) != ():
            stored.check(self.overall, SCALES, (1,))

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        return _shape(stored, self.packed, 16)

    def values(self, stored: Tensors) -> Array:
        overall = stored.floats(self.overall)
        with np.errstate(all="ignore"):
            scale = stored.floats(self.scale)
            scale = scale / overall.reshape(()) if self.divides else scale * overall.reshape(())
        return _times(numbers(stored.read(self.packed)), scale)

    def blocks(self, stored: Tensors) -> Stored | None:
        if self.shape(stored)[1] % KERNEL_COLUMNS:
            return None
        from pygpukit.models.quantised.blocks import of_nvfp4

        def rows() -> Array:
            overall = stored.floats(self.overall).reshape(-1)[0]
            return of_nvfp4(stored.read(self.packed), stored.read(self.scale), -overall if self.divides else overall)

        return Stored("NVFP4", rows)


@dataclass(frozen=True)
class MXFP4:
    """packed: the codes; scale: the exponents."""

    packed: str
    scale: str

    kind = "MXFP4"

    @property
    def tensors(self) -> tuple[str, ...]:
        return self.packed, self.scale

    def check(self, stored: Tensors) -> None:
        out, columns = self.shape(stored)
        stored.check(self.scale, uint8, (out, columns // 32))

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        return _shape(stored, self.packed, 32)

    def values(self, stored: Tensors) -> Array:
        return _times(numbers(stored.read(self.packed)), powers(stored.read(self.scale)))

    def blocks(self, stored: Tensors) -> Stored | None:
        from pygpukit.models.quantised.blocks import of_mxfp4

        def rows() -> Array:
            return of_mxfp4(stored.read(self.packed), stored.read(self.scale))

        return Stored("MXFP4", rows)


@dataclass(frozen=True)
class ExpertsMXFP4:
    """gpt-oss' experts: blocks (experts, out, blocks, 16) are values (experts, in, out)."""

    stem: str

    kind = "MXFP4"

    @property
    def tensors(self) -> tuple[str, ...]:
        return f"{self.stem}_blocks", f"{self.stem}_scales"

    def check(self, stored: Tensors) -> None:
        experts, columns, out = self.shape(stored)
        stored.check(self.tensors[1], uint8, (experts, out, columns // 32))

    def shape(self, stored: Tensors) -> tuple[int, ...]:
        experts, out, blocks, _ = stored.check(self.tensors[0], uint8, (None, None, None, 16))
        return experts, 32 * blocks, out

    def values(self, stored: Tensors) -> Array:
        packed, scale = self.tensors
        experts, columns, out = self.shape(stored)
        values = numbers(stored.read(packed).reshape(experts, out, columns // 2))
        return _times(values, powers(stored.read(scale))).swapaxes(1, 2)

    def blocks(self, stored: Tensors) -> Stored | None:
        """Its experts below each other."""
        from pygpukit.models.quantised.blocks import of_mxfp4

        experts, _, out = self.shape(stored)

        def rows() -> Array:
            codes, exponents = (stored.read(name).reshape(experts * out, -1) for name in self.tensors)
            return of_mxfp4(codes, exponents)

        return Stored("MXFP4", rows, is_transposed=True)
