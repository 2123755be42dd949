"""Prefill: a chunk of one prompt through the layers, its keys into blocks of the cache."""

from __future__ import annotations

from collections.abc import Sequence as Several
from functools import cached_property
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.nn.batch import Batch, new_batch

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.kv_cache import KVCache
    from pygpukit.nn.transformer import Buffers, Transformer


class Prefill:
    """Chunks of up to `count` tokens of sequences of up to `blocks` blocks; the buffers are made on first use."""

    def __init__(self, network: Transformer, cache: KVCache, count: int, blocks: int) -> None:
        self._network, self._cache, self._count, self._blocks = network, cache, count, blocks

    def compute(self, tokens: Several[int], start: int, blocks: Several[int], layers: int | None = None) -> GPUArray:
        """The output of the last layer, or of the first `layers`, float32 (tokens, hidden), until the next chunk.

        start: the position of the first token. blocks: those of the sequence.
        """
        import numpy as np

        count = len(tokens)
        inputs, buffers = self._batch.first(count), self.buffers.first(count)
        batch = Batch(inputs.tokens, inputs.positions, inputs.slots, start, blocks[0])
        table = np.zeros((count, self._blocks), np.int32)
        table[:, : len(blocks)] = blocks
        values = (tokens, range(start, start + count), table)
        for array, numbers in zip((batch.tokens, batch.positions, batch.slots), values, strict=True):
            native.copy_from_host(array, np.asarray(numbers, np.int32))
        self._network.forward(batch, self._cache, buffers, layers)
        return buffers.x

    @cached_property
    def buffers(self) -> Buffers:
        """Buffers of a chunk: queries, keys and values of the last layer, among others."""
        return self._network.buffers(self._count)

    @cached_property
    def _batch(self) -> Batch:
        return new_batch(self._count, self._blocks)
