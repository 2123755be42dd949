"""DecodeSteps: a token for each of several sequences, captured as a graph for each number of rows."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pygpukit._core import native
from pygpukit.llm.engine.rows import Line, Rows
from pygpukit.llm.engine.sampling import Choice, Sampler
from pygpukit.nn.linear.adapters import AdapterRows, adapter_rows
from pygpukit.ops import host

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.transformer import Cache, Captured, Transformer

_EIGHT = 8


class Launched(NamedTuple):
    """A step on the device: which line is in which row."""

    step: DecodeStep
    lines: Several[Line]
    places: Several[int]

    def read(self) -> list[Choice]:
        """The token that it chose for each line; to be asked when it has ended."""
        return self.step.read(self.lines, self.places)


class DecodeStep:
    """The first `size` rows: layers, logits and sampling. adjusts, top: as Sampler's. follows: as Batch's. layers: the
    first of them, None for all."""

    def __init__(
        self,
        network: Transformer,
        cache: Cache,
        rows: Rows,
        size: int,
        adjusts: bool,
        top: int,
        follows: bool,
        layers: int | None = None,
    ) -> None:
        self._layers = layers
        self._network, self._cache, self.size = network, cache, size
        self._batch = replace(rows.batch.first(size), follows=follows)
        self._buffers = rows.buffers.first(size)
        self.sampler = Sampler(size, network.config.vocab_size, adjusts, top, rows.sampling)
        self._bests = network.new_bests() if size == 1 else None
        self._graph: Captured | None = None
        self._recoveries = 0  # of the network when it was captured

    def compute(self, adapters: tuple[AdapterRows, ...] = ()) -> None:
        """Launch it, one launch after the other."""
        self._network.forward(replace(self._batch, adapters=adapters), self._cache, self._buffers, self._layers)
        self._network.head(self._buffers.x, self.sampler.logits, self._bests, passed=self._buffers)
        self.sampler.choose(self._batch, self._bests)

    def choose(self) -> None:
        """Launch the head and the sampling, which follow the layers."""
        self._network.head(self._buffers.x, self.sampler.logits, self._bests)
        self.sampler.choose(self._batch, self._bests)

    def capture(self) -> Captured:
        """The graph of compute(); captured once, and again when the network has recovered."""
        if self._graph is None or self._recoveries != self._network.recoveries:
            self._recoveries = self._network.recoveries
            self._graph = self._network.capture(self.compute)
        return self._graph

    def read(self, lines: Several[Line], places: Several[int]) -> list[Choice]:
        """The chosen tokens of lines in their rows."""
        if self.sampler.is_plain:
            positions = [0] * self.size
            for line, row in zip(lines, places, strict=True):
                positions[row] = line.position + 1
            choices = self.sampler.tokens_at(positions)
        else:
            tops: list[int | None] = [None] * self.size
            for line, row in zip(lines, places, strict=True):
                tops[row] = line.sequence.sampling.top
            choices = self.sampler.read(self._batch, tops)
        return [choices[row] for row in places]


class DecodeSteps:
    """The steps of one model and the rows that they share. blocks: that a sequence can have. graphs: captured or not,
    the same bits; of a network that streams layers none is. layers: the first of them, None for all."""

    def __init__(
        self, network: Transformer, cache: Cache, blocks: int, graphs: bool = True, layers: int | None = None
    ) -> None:
        self._layers = layers
        self._network, self._cache, self._blocks = network, cache, blocks
        self._graphs = graphs and network.streaming is None
        self._rows: Rows | None = None
        self._steps: dict[tuple[int, bool, int, bool], DecodeStep] = {}

    @property
    def sizes(self) -> set[int]:
        """Numbers of rows that there are steps for."""
        return {size for size, *_ in self._steps}

    def logits(self) -> GPUArray:
        """The logits of the last step, float32 (rows, vocabulary); all rows that there is room for."""
        return self._room(1).sampling.logits

    def outputs(self) -> GPUArray:
        """The last layer's output in the last step, float32 (rows, hidden); all rows that there is room for."""
        return self._room(1).buffers.x

    def follows(self, lines: Several[Line]) -> bool:
        """True if a step of these lines can be launched before the tokens of the one before it are read."""
        if self._rows is None or (size := padded(len(lines))) > self._rows.count:
            return False
        sampler = self._step(lines, size).sampler
        return sampler.is_plain and self._rows.has(lines, self._rows.place(lines, size), sampler)

    def launch(self, lines: Several[Line]) -> Launched:
        """Begin a step."""
        size = padded(len(lines))
        rows = self._room(size)
        step, places = self._step(lines, size), rows.place(lines, size)
        rows.load(lines, places, size, step.sampler)
        adapted = [pair for pair in zip(places, lines, strict=True) if pair[1].sequence.adapter is not None]
        adapters = adapter_rows((row, row + 1, line.sequence.adapter) for row, line in sorted(adapted, key=_row))
        step.capture().launch() if self._graphs and not adapters else step.compute(adapters)
        rows.advance(lines, places)
        return Launched(step, lines, places)

    def launch_first(self, lines: Several[Line], outputs: Several[GPUArray]) -> Launched:
        """Begin the choice of the first token of each answer. outputs: the last layer's at the end of each prompt,
        float32 (1, hidden)."""
        size = padded(len(lines))
        rows = self._room(size)
        step, places = self._step(lines, size), rows.place(lines, size)
        for row, x in zip(places, outputs, strict=True):
            native.copy(rows.buffers.x[row : row + 1], x)
        rows.load(lines, places, size, step.sampler)
        step.choose()
        return Launched(step, lines, places)

    def capture(self, count: int = 1) -> Captured:
        """The graph of a step of one greedy sequence, of one row or of so many that follow each other."""
        size = padded(count)
        self._room(size)
        return self._of(size, False, 0, count > 1).capture()

    def drop_tokens(self) -> None:
        """The tokens that the last step chose are not to be computed: the next one brings its own."""
        if self._rows is not None:
            self._rows.drop_tokens()

    def forget(self) -> None:
        """A step was broken off."""
        if self._rows is not None:
            self._rows.forget()

    def _room(self, size: int) -> Rows:
        """Rows for a step of that size: twice as many where there are too few, and all graphs are captured again.
        Whoever is on the device has been read by then."""
        if self._rows is None or self._rows.count < size:
            self._steps.clear()
            self._rows = None
            self._rows = Rows(self._network, 1 << (size - 1).bit_length(), self._blocks)
        return self._rows

    def _step(self, lines: Several[Line], size: int) -> DecodeStep:
        """The step of that size, with what the settings of the lines need."""
        adjusts, top, follows = False, 0, False
        for line in lines:
            sequence = line.sequence
            adjusts = adjusts or sequence.adjusts
            follows = follows or bool(line.drafts)
            if sequence.sampling.top is not None:
                top = max(top, sequence.sampling.top, 2)
        return self._of(size, adjusts, top, follows)

    def _of(self, size: int, adjusts: bool, top: int, follows: bool) -> DecodeStep:
        key = size, adjusts, top, follows
        if key not in self._steps:
            self._steps[key] = DecodeStep(self._network, self._cache, self._room(size), *key, self._layers)
        return self._steps[key]


def _row(item: tuple[int, Line]) -> int:
    return item[0]


def padded(count: int) -> int:
    """Rows of the step for so many: few numbers, each captured once. Where the host computes every row costs, and there
    is nothing to capture: no more than are needed."""
    if host.computes():
        return count
    return 1 << (count - 1).bit_length() if count <= _EIGHT else -(-count // _EIGHT) * _EIGHT
