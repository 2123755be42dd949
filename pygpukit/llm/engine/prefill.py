"""Prefill: parts of prompts through the layers in one pass, their keys into blocks of the cache."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Several
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.nn.batch import Batch, Span, new_batch
from pygpukit.nn.linear.adapters import adapter_rows

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.linear.adapters import Adapter
    from pygpukit.nn.transformer import Buffers, Cache, Transformer


class Part(NamedTuple):
    """Tokens that follow each other from position `start` of a sequence, and the sequence's blocks and adapter."""

    tokens: Several[int]
    start: int
    blocks: Several[int]
    adapter: Adapter | None = None


class Prefill:
    """Passes over up to `count` tokens of sequences of up to `blocks` blocks; the buffers are made on first use."""

    def __init__(self, network: Transformer, cache: Cache, count: int, blocks: int) -> None:
        self._network, self._cache, self._count, self._blocks = network, cache, count, blocks

    def compute(self, parts: Several[Part], layers: int | None = None) -> GPUArray:
        """The output of the last layer, or of the first `layers`, for all parts one after the other, float32 (tokens,
        hidden), until the next pass. A row's bits do not depend on what else is in the pass."""
        batch, buffers = self._load(parts)
        self._network.forward(batch, self._cache, buffers, layers)
        return buffers.x

    def begin(self, parts: Several[Part]) -> tuple[Iterator[None], GPUArray]:
        """Begin a pass that computes a layer whenever it is asked for the next, of a network on one device; and what
        compute() gives, once there is none left."""
        batch, buffers = self._load(parts)
        return self._network.stages(batch, self._cache, buffers), buffers.x

    def _load(self, parts: Several[Part]) -> tuple[Batch, Buffers]:
        import numpy as np

        ends = list(accumulate(len(part.tokens) for part in parts))
        count, firsts = ends[-1], [0, *ends]
        tokens, positions = np.empty(count, np.int32), np.empty(count, np.int32)
        table = np.zeros((count, self._blocks), np.int32)
        spans = []
        for part, first, end in zip(parts, firsts, ends, strict=False):
            tokens[first:end] = part.tokens
            positions[first:end] = range(part.start, part.start + end - first)
            table[first:end, : len(part.blocks)] = part.blocks
            spans.append(Span(first, end, part.start))
        inputs, buffers = self._batch.first(count), self.buffers.first(count)
        rows = adapter_rows((*span[:2], part.adapter) for span, part in zip(spans, parts, strict=True))
        batch = replace(inputs, spans=tuple(spans), adapters=rows)
        for array, values in ((batch.tokens, tokens), (batch.positions, positions), (batch.slots, table)):
            native.copy_from_host(array, values)
        return batch, buffers

    @cached_property
    def buffers(self) -> Buffers:
        """Buffers of a pass: queries, keys and values of the last layer, among others."""
        return self._network.buffers(self._count)

    @cached_property
    def _batch(self) -> Batch:
        return new_batch(self._count, self._blocks)
