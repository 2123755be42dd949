"""MambaBlock: a layer of a Mamba-2 model, added to what came in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.nn.mamba.mixer import Mamba2
from pygpukit.nn.norm import Norm

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.linear.layer import LinearBF16
    from pygpukit.nn.mamba.cache import LayerState


@dataclass
class MambaBlock:
    """norm: of what comes in."""

    norm: Norm
    mixer: Mamba2

    @property
    def linears(self) -> tuple[LinearBF16, ...]:
        """All products."""
        return self.mixer.linears

    @property
    def norms(self) -> list[Norm]:
        """The norms of rows: the mixer's is of groups."""
        return [self.norm]

    def shares(self) -> Iterator[tuple[GPUArray | Blocks, float]]:
        """Each weight, and the share of it that a row reads."""
        yield from ((array, 1.0) for array in self.norm.arrays)
        yield from self.mixer.shares()

    def forward(self, x: GPUArray, batch: Batch, cache: LayerState, *_: Any) -> None:
        """x, float32 (R, hidden), after this layer; written in place; buffers of attention are not used."""
        self.mixer.forward(x, batch, self.norm, cache)
