"""The engine of a model: prompts into the cache in chunks, then a token a step for one or several sequences."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core import doing
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.event import Event
from pygpukit.core.graph import Graph
from pygpukit.core.stream import Stream
from pygpukit.core.turns import is_free, turn
from pygpukit.llm.sampling import Choice, Sampler, Sampling
from pygpukit.nn.batch import Batch, new_batch
from pygpukit.nn.kv_cache import KVCache, Slot

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.model import CausalTransformerModel

CHUNK = 512  # tokens of a prompt that are computed at once


@dataclass(eq=False)
class Request:
    """One sequence: its prompt, what was chosen after it, and where its keys and values are."""

    prompt: list[int]
    sampling: Sampling
    cache: KVCache
    slot: Slot
    reused: int = 0
    answer: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Tokens so far; the last one chosen is not in the cache yet."""
        return len(self.prompt) + len(self.answer)


class DecodeStep:
    """One token for each of R sequences: layers, logits and choice, captured once as a graph.

    What differs between steps (tokens, positions, slots, requests) lies in device memory, where the graph reads it and
    leaves the next step's. So the next one can be begun before the host has seen this one's tokens.
    """

    def __init__(self, model: CausalTransformerModel, rows: int, adjusts: bool, told: int) -> None:
        self._model = model
        self.rows = new_batch(rows)
        self.sampler = Sampler(rows, model.config.vocab_size, adjusts, told)
        self._buffers = model.buffers(rows)
        self.bests = model.new_bests() if rows == 1 else None
        self._graph: Graph | None = None
        self._loaded: list[tuple[Request, int]] = []
        self._begun: Event | None = None  # the end of a step after those, which nobody has asked for yet
        self._ends = [Event(timing=False) for _ in range(2)]
        self._stream = 0  # of the newest of them

    def load(self, sequences: Sequence[Request]) -> bool:
        """The state of sequences whose last token is chosen and not in the cache yet. False if it was there already."""
        if self._loaded == [(sequence, sequence.length) for sequence in sequences]:
            return False
        import numpy as np

        self._loaded = []  # whatever comes of this: it is no more what was there
        if self._begun is not None:
            self._begun.synchronize()
            self._begun = None
        native.fill(self._buffers.attention.counters, bytes(4))  # of a step that was broken off
        for row, sequence in enumerate(sequences):
            self.sampler.load(row, sequence.sampling, sequence.prompt, sequence.answer)
        last = [(s.prompt + s.answer)[-1] for s in sequences]
        state = (last, [s.length - 1 for s in sequences], [s.slot.number for s in sequences])
        for array, values in zip((self.rows.tokens, self.rows.positions, self.rows.slots), state, strict=True):
            native.copy_from_host(array, np.asarray(values, np.int32))
        return True

    def choose(self, sequences: Sequence[Request]) -> list[Choice]:
        """Chooses by the logits that are there: after a prompt."""
        self.sampler.choose(self.rows, self.bests)
        native.current_stream().synchronize()
        return self._taken(sequences)

    def run(self, sequences: Sequence[Request], eager: bool = False, ahead: bool = False) -> list[Choice]:
        """The next token of each sequence. eager: without the graph, launch by launch; the same bits.

        ahead: begin the step after it, too, so that the device does not wait until this one's tokens are read and asked
        to go on. It is not begun for sequences that took turns with others, nor where the device is shared by turns.
        """
        own = turn()
        with own:
            loaded = self.load(sequences)
            self._loaded = []  # until it is done
            end, self._begun = self._begun or self._begin(eager), None
            room = all(sequence.length < self._model.context for sequence in sequences)
            if ahead and room and not loaded and self.sampler.says and is_free(own):
                if self._stream != native.current_stream().id:
                    end.synchronize()
                self._begun = self._begin(eager)
            end.synchronize()
            return self._taken(sequences)

    def _begin(self, eager: bool) -> Event:
        """A step; when it has ended."""
        self._launch() if eager else self.capture().launch()
        self._ends.reverse()
        self._ends[0].record()
        self._stream = native.current_stream().id
        return self._ends[0]

    def settle(self) -> None:
        """Wait for a step that was begun ahead: it writes into the slots of its sequences."""
        begun = self._begun
        if begun is not None:
            begun.synchronize()

    def capture(self) -> Graph:
        """The graph of a step; captured once."""
        if self._graph is None:
            _ = self._model.cache  # what is made on first use is made before the capture
            stream = Stream()
            with stream.capture() as graph:
                self._launch()
            self._graph = graph
        return self._graph

    def _launch(self) -> None:
        self._model.forward(self.rows, self._buffers)
        self._model.head(self._buffers.x, self.sampler.logits, self.bests, overlaps=True)
        self.sampler.choose(self.rows, self.bests)

    def _taken(self, sequences: Sequence[Request]) -> list[Choice]:
        if self.sampler.says:
            choices = self.sampler.said([sequence.length for sequence in sequences])
        else:
            choices = self.sampler.read(self.rows, [s.sampling.top for s in sequences])
        for sequence, choice in zip(sequences, choices, strict=True):
            sequence.answer.append(choice.token)
        self._loaded = [(sequence, sequence.length) for sequence in sequences]
        return choices


class Engine:
    """Runs sequences on one model, for as long as that lives. One call at a time: callers hold the model's lock."""

    def __init__(self, model: CausalTransformerModel, chunk: int = CHUNK) -> None:
        # The model has the engine: what names each other is freed only when Python's collector comes by.
        self._model = cast("CausalTransformerModel", weakref.proxy(model))
        self._chunk = chunk
        self._steps: dict[tuple[int, bool, int], DecodeStep] = {}
        self._prefill = model.buffers(chunk)
        self._inputs = new_batch(chunk)

    def open(self, prompt: list[int], sampling: Sampling) -> Request:
        """A sequence with a slot of its own; close() gives that back.

        Raises InvalidSpecError for a prompt that does not fit the context, saying by how much, or is empty, or has
        numbers that are no tokens.
        """
        check_prompt(prompt, self._model)
        cache, seeded = self._model.cache, sampling.seeded()
        slot, reused = cache.acquire(prompt)
        return Request(list(prompt), seeded, cache, slot, reused)

    def close(self, sequence: Request) -> None:
        """Give the sequence's slot back; after the model's end, too."""
        try:
            for step in list(self._steps.values()):
                step.settle()
        finally:
            sequence.cache.release(sequence.slot)

    def prefill(self, sequence: Request, step: DecodeStep, row: int, stop: Callable[[], bool] = lambda: False) -> bool:
        """The prompt into the cache, and the logits after it into a row of a step. False if stop() said so between."""
        start, whole = sequence.reused, len(sequence.prompt)
        while start < whole:
            if stop():
                return False
            if start > sequence.reused:
                doing.say(f"Reading {whole} tokens, {start} are read")
            end = min(start + self._chunk, len(sequence.prompt))
            self._compute(sequence.prompt[start:end], start, sequence.slot.number)
            sequence.slot.prompt = sequence.prompt[:end]
            start = end
        last = (len(sequence.prompt) - sequence.reused - 1) % self._chunk
        self._model.head(self._prefill.x[last : last + 1], step.sampler.logits[row : row + 1], step.bests)
        return True

    def hidden(self, tokens: list[int]) -> GPUArray:
        """The last layer's output for a prompt, float32 (tokens, hidden)."""
        request = self.open(tokens, Sampling())
        try:
            found = factory.empty((len(tokens), self._model.config.hidden_size), "float32")
            for start in range(0, len(tokens), self._chunk):
                part = tokens[start : start + self._chunk]
                self._compute(part, start, request.slot.number)
                native.copy(found[start : start + len(part)], self._prefill.x[: len(part)])
            return found
        finally:
            self.close(request)

    def prepare(self) -> None:
        """Capture the step of one greedy sequence."""
        key = (1, False, 0)
        self._steps.setdefault(key, DecodeStep(self._model, *key)).capture()

    def step(self, sequences: Sequence[Request]) -> DecodeStep:
        """The step for so many sequences with what their requests need."""
        adjusts = any(s.sampling.adjusts for s in sequences)
        told = max(0 if s.sampling.top is None else max(s.sampling.top, 2) for s in sequences)
        key = (len(sequences), adjusts, told)
        if key not in self._steps:
            self._steps[key] = DecodeStep(self._model, *key)
        return self._steps[key]

    def _compute(self, tokens: list[int], position: int, slot: int) -> None:
        import numpy as np

        count = len(tokens)
        inputs = self._inputs
        rows = Batch(inputs.tokens[:count], inputs.positions[:count], inputs.slots[:count], position, slot)
        values = (tokens, range(position, position + count), [slot] * count)
        with turn():
            for array, value in zip((rows.tokens, rows.positions, rows.slots), values, strict=True):
                native.copy_from_host(array, np.asarray(value, np.int32))
            self._model.forward(rows, self._prefill.first(count))


def check_prompt(prompt: list[int], model: CausalTransformerModel) -> None:
    """Raises InvalidSpecError for what cannot be a prompt of the model."""
    if not prompt:
        raise InvalidSpecError("the prompt is empty; a model needs at least one token", "prompt")
    for token in prompt:
        if not 0 <= token < model.config.vocab_size:
            raise InvalidSpecError(
                f"the prompt has the token {token}, the model {model.config.vocab_size} tokens from 0", "prompt"
            )
    if len(prompt) >= model.context:
        over = len(prompt) - model.context + 1
        raise InvalidSpecError(
            f"the prompt has {len(prompt)} tokens and the context {model.context}, one of them for the answer: "
            f"{over} too many; shorten it, or load the model with a larger context (at most "
            f"{model.config.max_position_embeddings})",
            "prompt",
        )
