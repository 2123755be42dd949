"""DecodeStep: one token for each of several sequences, captured once as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.core.event import Event
from pygpukit.core.graph import Graph
from pygpukit.core.stream import Stream
from pygpukit.core.turns import is_free, turn
from pygpukit.llm.engine.sampling import Choice, Sampler
from pygpukit.nn.batch import new_batch

if TYPE_CHECKING:
    from pygpukit.llm.engine.sequence import Sequence
    from pygpukit.nn.kv_cache import KVCache
    from pygpukit.nn.transformer import Transformer


class DecodeStep:
    """One token for each of R sequences: layers, logits and sampling, captured once as a graph.

    What differs between steps (tokens, positions, slots, settings) lies in device memory, where the graph reads it and
    leaves the next step's. So the next one can be begun before the host has seen this one's tokens.
    """

    def __init__(self, network: Transformer, cache: KVCache, size: int, adjusts: bool, top: int) -> None:
        self._network, self._cache = network, cache
        self.batch = new_batch(size)
        self.sampler = Sampler(size, network.config.vocab_size, adjusts, top)
        self._buffers = network.buffers(size)
        self.bests = network.new_bests() if size == 1 else None
        self._graph: Graph | None = None
        self._loaded: list[tuple[Sequence, int]] = []
        self._ahead: Event | None = None  # the end of a step after those, which nobody has asked for yet
        self._ends = [Event(timing=False) for _ in range(2)]
        self._stream = 0  # of the newest of them

    def load(self, sequences: list[Sequence]) -> bool:
        """The state of sequences whose last token is sampled and not cached yet. False if it was there already."""
        if self._loaded == [(sequence, sequence.length) for sequence in sequences]:
            return False
        import numpy as np

        self._loaded = []
        if self._ahead is not None:
            self._ahead.synchronize()
            self._ahead = None
        native.fill(self._buffers.attention.counters, bytes(4))  # of a step that was broken off
        for row, sequence in enumerate(sequences):
            self.sampler.load(row, sequence.sampling, sequence.prompt, sequence.answer)
        last = [(s.prompt + s.answer)[-1] for s in sequences]
        state = (last, [s.length - 1 for s in sequences], [s.slot.number for s in sequences])
        for array, values in zip((self.batch.tokens, self.batch.positions, self.batch.slots), state, strict=True):
            native.copy_from_host(array, np.asarray(values, np.int32))
        return True

    def sample(self, sequences: list[Sequence]) -> list[Choice]:
        """The next token of each sequence by the logits that are there: after prefill."""
        self.sampler.choose(self.batch, self.bests)
        native.current_stream().synchronize()
        return self._append(sequences)

    def run(self, sequences: list[Sequence], eager: bool = False, ahead: bool = False) -> list[Choice]:
        """The next token of each sequence. eager: without the graph, launch by launch; the same bits.

        ahead: begin the step after it, too, so that the device does not wait until this one's tokens are read and asked
        to go on. It is not begun for sequences that took turns with others, nor where the device is shared by turns.
        """
        own = turn()
        with own:
            loaded = self.load(sequences)
            self._loaded = []  # until it is done
            end, self._ahead = self._ahead or self._begin(eager), None
            has_room = all(sequence.length < self._cache.positions for sequence in sequences)
            if ahead and has_room and not loaded and self.sampler.is_plain and is_free(own):
                if self._stream != native.current_stream().id:
                    end.synchronize()
                self._ahead = self._begin(eager)
            end.synchronize()
            return self._append(sequences)

    def settle(self) -> None:
        """Wait for a step that was begun ahead: it writes into the slots of its sequences."""
        ahead = self._ahead
        if ahead is not None:
            ahead.synchronize()

    def capture(self) -> Graph:
        """The graph of a step; captured once."""
        if self._graph is None:
            stream = Stream()
            with stream.capture() as graph:
                self._launch()
            self._graph = graph
        return self._graph

    def _begin(self, eager: bool) -> Event:
        """Launch a step; the event of its end."""
        self._launch() if eager else self.capture().launch()
        self._ends.reverse()
        self._ends[0].record()
        self._stream = native.current_stream().id
        return self._ends[0]

    def _launch(self) -> None:
        self._network.forward(self.batch, self._cache, self._buffers)
        self._network.head(self._buffers.x, self.sampler.logits, self.bests, overlaps=True)
        self.sampler.choose(self.batch, self.bests)

    def _append(self, sequences: list[Sequence]) -> list[Choice]:
        """The sampled tokens, appended to their sequences."""
        if self.sampler.is_plain:
            choices = self.sampler.tokens_at([sequence.length for sequence in sequences])
        else:
            choices = self.sampler.read(self.batch, [s.sampling.top for s in sequences])
        for sequence, choice in zip(sequences, choices, strict=True):
            sequence.answer.append(choice.token)
        self._loaded = [(sequence, sequence.length) for sequence in sequences]
        return choices
