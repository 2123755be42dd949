"""Batch: the rows that a model computes together, and products on the host whose bits do not depend on the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pygpukit._core import native
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.linear.adapters import AdapterRows


class Span(NamedTuple):
    """Rows first .. end - 1 of a prefill, which follow each other in one sequence from position `start` on. slot: that
    sequence's, of a cache that has one for each."""

    first: int
    end: int
    start: int
    slot: int = 0


@dataclass(frozen=True)
class Batch:
    """R rows. tokens and positions: int32 (R,) on the device: what stands where in its sequence.

    slots: where that sequence's keys are: int32 (R,), its slot of a cache that has one for each sequence, or (R, n),
    the blocks that hold its positions in order; entries behind those that it has are not read.
    spans: of a prefill, the parts of prompts that its rows are, one after the other; none in decode, when each row is
    the next one of a sequence of its own. follows: rows of a decode step may follow each other in one sequence, so that
    a row sees the keys of others. adapters: the rows that have one. memory: int32, what tokens, positions and slots are
    views of.
    """

    tokens: GPUArray
    positions: GPUArray
    slots: GPUArray
    spans: tuple[Span, ...] = ()
    follows: bool = False
    adapters: tuple[AdapterRows, ...] = ()
    memory: GPUArray | None = None

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.tokens.shape[0]

    @property
    def blocks(self) -> int:
        """Blocks of the cache that a sequence can have; 1 where it has a slot."""
        return 1 if self.slots.ndim == 1 else self.slots.shape[1]

    @property
    def decodes(self) -> bool:
        """True if it is a decode step: one row a sequence."""
        return not self.spans

    @property
    def start(self) -> int | None:
        """The position of a prefill's first row; None in decode."""
        return self.spans[0].start if self.spans else None

    def first(self, count: int) -> Batch:
        """Views of the first rows."""
        return replace(self, tokens=self.tokens[:count], positions=self.positions[:count], slots=self.slots[:count])

    def within(self, memory: GPUArray) -> Batch:
        """The same rows in other memory of the same size."""
        tokens, positions, slots = (
            native.view(memory, array.shape, array.strides, array.offset)
            for array in (self.tokens, self.positions, self.slots)
        )
        return replace(self, tokens=tokens, positions=positions, slots=slots, memory=memory)


def new_batch(count: int, blocks: int | None = None, *, follows: bool = False) -> Batch:
    """A batch whose tokens, positions and slots, or blocks of sequences that can have so many, are set later.
    follows: as Batch's."""
    from pygpukit.array import factory

    memory = factory.zeros(count * (3 if blocks is None else 2 + blocks), "int32")
    slots = memory[2 * count :]
    if blocks is not None:
        slots = slots.reshape(count, blocks)
    return Batch(memory[:count], memory[count : 2 * count], slots, follows=follows, memory=memory)


def product(x: Any, weight: GPUArray, kind: str = "") -> Any:
    """x @ weight.T on the host: x (R, K) float32. kind: of the weight's blocks, (rows, bytes). A row's bits depend on
    itself and K only."""
    import numpy as np

    out = np.empty((x.shape[0], weight.shape[0]), np.float32)
    native.host_products(x, host.memory(weight), out, *([kind] if kind else []))
    return out
