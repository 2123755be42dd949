"""BatchStep: one token for each of several sequences whose keys lie in blocks, captured once as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.core.graph import Graph
from pygpukit.core.stream import Stream
from pygpukit.llm.engine.sampling import Choice, Sampler
from pygpukit.nn.batch import new_batch

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.engine.batched_sequence import BatchedSequence
    from pygpukit.nn.block_cache import BlockCache
    from pygpukit.nn.transformer import Transformer

_NOWHERE = -(
    2**30
)  # the position of a row that has no sequence: attention and cache leave it out, however often it runs


class Line(NamedTuple):
    """A row of a step: the position of a sequence that is computed, and the sequence's blocks."""

    sequence: BatchedSequence
    position: int
    blocks: Sequence[int]


class BatchStep:
    """One token for each of up to `size` sequences of up to `blocks` blocks: layers, logits and sampling, as a graph.

    What differs between steps lies in device memory, where the graph reads it and leaves the next step's: a step of the
    same sequences, one position further, is launched without a copy.
    """

    def __init__(
        self, network: Transformer, cache: BlockCache, size: int, blocks: int, adjusts: bool, top: int
    ) -> None:
        self._network, self._cache = network, cache
        self._batch = new_batch(size, blocks)
        self._sampler = Sampler(size, network.config.vocab_size, adjusts, top)
        self._buffers = network.buffers(size)
        self._bests = network.new_bests() if size == 1 else None
        self._graph: Graph | None = None
        self._lines: list[Line] = []  # of the step that runs or ran last
        self._next: list[tuple[BatchedSequence, int, list[int]]] = []  # what the device has, ready for a step

    def run(self, lines: list[Line]) -> None:
        """Begin a step; read() waits for it."""
        self._load(lines)
        if self._graph is None:
            stream = Stream()
            with stream.capture() as graph:
                self._network.forward(self._batch, self._cache, self._buffers)
                self._network.head(self._buffers.x, self._sampler.logits, self._bests, overlaps=True)
                self._sampler.choose(self._batch, self._bests)
            self._graph = graph
        self._graph.launch()

    def put(self, row: int, x: GPUArray) -> None:
        """The last layer's output at the end of a row's prompt, float32 (1, hidden), for choose_first()."""
        native.copy(self._buffers.x[row : row + 1], x)

    def choose_first(self, lines: list[Line]) -> None:
        """Begin the choice of the first token of each answer; read() waits for it."""
        self._load(lines)
        self._network.head(self._buffers.x, self._sampler.logits, self._bests)
        self._sampler.choose(self._batch, self._bests)

    def read(self) -> list[Choice]:
        """The tokens of the step, when it has ended on the current stream."""
        lines = self._lines
        if self._sampler.is_plain:
            beside = [0] * (self._batch.count - len(lines))
            choices = self._sampler.tokens_at([line.position + 1 for line in lines] + beside)
        else:
            tops = [line.sequence.sampling.top for line in lines]
            choices = self._sampler.read(self._batch, tops + [None] * (self._batch.count - len(lines)))
        self._next = [(line.sequence, line.position + 1, list(line.blocks)) for line in lines]
        return choices[: len(lines)]

    def _load(self, lines: list[Line]) -> None:
        """Tokens, positions, blocks and settings of rows, unless the last step has left them there."""
        import numpy as np

        held, self._next = self._next, []
        self._lines = lines
        state = [(line.sequence, line.position, list(line.blocks)) for line in lines]
        is_next = all(len(sequence.answer) + len(sequence.prompt) == position + 1 for sequence, position, _ in state)
        if held == state and is_next:
            return
        native.fill(self._buffers.attention.counters, bytes(4))  # of a step that was broken off
        count, blocks = self._batch.slots.shape
        tokens, positions = np.zeros(count, np.int32), np.full(count, _NOWHERE, np.int32)
        table = np.zeros((count, blocks), np.int32)
        for row, (sequence, position, own) in enumerate(state):
            tokens[row], positions[row], table[row, : len(own)] = sequence.token_at(position), position, own
            if row < len(held) and held[row][:2] == (sequence, position) and is_next:
                continue
            answer = sequence.answer[: position + 1 - len(sequence.prompt)]
            self._sampler.load(row, sequence.sampling, list(sequence.prompt), answer)
        batch = self._batch
        for array, values in ((batch.tokens, tokens), (batch.positions, positions), (batch.slots, table)):
            native.copy_from_host(array, values)
