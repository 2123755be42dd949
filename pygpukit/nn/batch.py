"""Batch: the rows that a model computes together, and products on the host whose bits do not depend on the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

# Attention on the host takes so many rows of a prompt at a time, always those of the same positions, whatever else is
# computed with them, so that a row's bits do not depend on where a prompt is cut into chunks.
BLOCK = 64


@dataclass(frozen=True)
class Batch:
    """R rows. tokens, positions and slots: int32 (R,) on the device: what stands where in which sequence's cache.

    start: of a prefill, whose rows follow each other in one sequence, the position of the first, and slot that
    sequence's slot; None in decode, when each row is the next one of a sequence of its own.
    """

    tokens: GPUArray
    positions: GPUArray
    slots: GPUArray
    start: int | None = None
    slot: int = 0

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.tokens.shape[0]

    @property
    def decodes(self) -> bool:
        """True if it is a decode step: one row a sequence."""
        return self.start is None


def new_batch(count: int) -> Batch:
    """A batch whose tokens, positions and sequences are set later."""
    from pygpukit.array import factory

    return Batch(factory.zeros(count, "int32"), factory.zeros(count, "int32"), factory.zeros(count, "int32"))


def product(x: Any, weight: GPUArray) -> Any:
    """x @ weight.T on the host: x (R, K) float32. A row's bits depend on itself and K only."""
    import numpy as np

    out = np.empty((x.shape[0], weight.shape[0]), np.float32)
    native.host_products(x, host.memory(weight), out)
    return out


def blocks(first: int, count: int) -> list[tuple[int, int, int]]:
    """(position where the block starts, first and last row + 1) of each block that rows from position `first` touch."""
    starts = range(first // BLOCK * BLOCK, first + count, BLOCK)
    return [(start, max(start - first, 0), min(start + BLOCK - first, count)) for start in starts]
