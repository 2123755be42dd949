"""DecoderStep: a step of Whisper's decoder as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.stream import Stream
from pygpukit.core.turns import turn
from pygpukit.nn.batch import new_batch
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.asr.decoder import DecoderCache, WhisperDecoder


def rows_for(count: int) -> int:
    """The rows of a step for so many sequences: a power of two, so that few graphs serve as sequences end. On the
    simulation a graph costs little and a row much: exactly as many."""
    return count if host.computes() else 1 << (count - 1).bit_length()


class DecoderStep:
    """One token for each of R sequences of a cache, captured once as a graph: a launch of it costs the host as little
    as one kernel's. Fewer sequences are filled up with the last one again: a row's bits do not depend on the others."""

    def __init__(self, decoder: WhisperDecoder, cache: DecoderCache, rows: int) -> None:
        self._rows, self._heard = new_batch(rows), decoder.heard([0] * rows)
        self._buffers = decoder.buffers(rows)
        self._logits = factory.empty((rows, decoder.vocab_size), "float32")
        stream = Stream()
        with stream.capture() as self._graph:
            decoder.head(decoder.run(self._rows, self._heard, cache, self._buffers), self._logits)

    def run(
        self, tokens: Sequence[int], positions: Sequence[int], slots: Sequence[int], windows: Sequence[int]
    ) -> GPUArray:
        """The logits, float32 (tokens, vocabulary), a view of what the next step writes."""
        import numpy as np

        count, rows = len(tokens), self._rows
        arrays = rows.tokens, rows.positions, rows.slots, self._heard.slots
        with turn():
            for array, values in zip(arrays, (tokens, positions, slots, windows), strict=True):
                filled = [*values, *[values[-1]] * (rows.count - count)]
                native.copy_from_host(array, np.asarray(filled, np.int32))
            self._graph.launch()
        return self._logits[:count]
