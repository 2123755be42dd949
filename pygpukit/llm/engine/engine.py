"""Engine: it owns a network and its KV cache; prompts are prefilled in chunks, then decoded a token a step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core import doing
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.turns import turn
from pygpukit.llm.engine.sampling import Sampling
from pygpukit.llm.engine.sequence import Sequence
from pygpukit.llm.engine.step import DecodeStep
from pygpukit.nn.batch import Batch, new_batch
from pygpukit.nn.kv_cache import KVCache

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.transformer import Buffers, Transformer

CHUNK = 512  # tokens of a prompt that are prefilled at once


class Engine:
    """Runs sequences on one network.

    slots: sequences that can be open at once. lock: callers hold it for each step, since buffers serve one at a time.
    """

    def __init__(self, network: Transformer, slots: int = 1, *, name: str = "model", chunk: int = CHUNK) -> None:
        self.network, self.name = network, name
        self.lock = threading.RLock()
        self._slots, self._chunk = slots, chunk
        self._steps: dict[tuple[int, bool, int], DecodeStep] = {}
        self._cache: KVCache | None = None
        self._making = threading.Lock()

    @property
    def context(self) -> int:
        """Positions that a sequence can have."""
        return self.network.positions

    @property
    def cache(self) -> KVCache:
        """Keys and values of all open sequences; allocated on first use."""
        with self._making:
            if self._cache is None:
                network = self.network
                self._cache = KVCache(network.config, self._slots, self.context, network.dtype, self.name)
            return self._cache

    def open(self, prompt: list[int], sampling: Sampling) -> Sequence:
        """A sequence with a slot of its own; close() gives that back.

        Raises InvalidSpecError for a prompt that does not fit the context, saying by how much, or is empty, or has
        numbers that are no tokens.
        """
        self.check(prompt)
        sampling = sampling.seeded()
        slot, cached = self.cache.acquire(prompt)
        return Sequence(list(prompt), sampling, slot, cached)

    def close(self, sequence: Sequence) -> None:
        """Give the sequence's slot back."""
        try:
            for step in list(self._steps.values()):
                step.settle()
        finally:
            self.cache.release(sequence.slot)

    def prefill(self, sequence: Sequence, step: DecodeStep, row: int, stop: Callable[[], bool] = lambda: False) -> bool:
        """The prompt into the cache, and the logits after it into a row of a step. False if stop() said so between."""
        start, count = sequence.cached, len(sequence.prompt)
        while start < count:
            if stop():
                return False
            if start > sequence.cached:
                doing.say(f"Reading {count} tokens, {start} are read")
            end = min(start + self._chunk, count)
            self._compute(sequence.prompt[start:end], start, sequence.slot.number)
            sequence.slot.prompt = sequence.prompt[:end]
            start = end
        last = (count - sequence.cached - 1) % self._chunk
        x = self._prefill_state[1].x[last : last + 1]
        self.network.head(x, step.sampler.logits[row : row + 1], step.bests)
        return True

    def step(self, sequences: list[Sequence]) -> DecodeStep:
        """The decode step for these sequences: of their number, and with what their settings need."""
        adjusts = any(s.sampling.adjusts for s in sequences)
        top = max(0 if s.sampling.top is None else max(s.sampling.top, 2) for s in sequences)
        return self._step(len(sequences), adjusts, top)

    def prepare(self) -> DecodeStep:
        """The step of one greedy sequence, captured."""
        step = self._step(1, False, 0)
        step.capture()
        return step

    def hidden(self, tokens: list[int]) -> GPUArray:
        """The last layer's output for a prompt, float32 (tokens, hidden)."""
        sequence = self.open(tokens, Sampling())
        try:
            states = factory.empty((len(tokens), self.network.config.hidden_size), "float32")
            for start in range(0, len(tokens), self._chunk):
                part = tokens[start : start + self._chunk]
                self._compute(part, start, sequence.slot.number)
                native.copy(states[start : start + len(part)], self._prefill_state[1].x[: len(part)])
            return states
        finally:
            self.close(sequence)

    def check(self, prompt: list[int]) -> None:
        """Raises InvalidSpecError for what cannot be a prompt of the model."""
        vocabulary = self.network.config.vocab_size
        if not prompt:
            raise InvalidSpecError("the prompt is empty; a model needs at least one token", "prompt")
        for token in prompt:
            if not 0 <= token < vocabulary:
                raise InvalidSpecError(
                    f"the prompt has the token {token}, the model {vocabulary} tokens from 0", "prompt"
                )
        if len(prompt) >= self.context:
            over = len(prompt) - self.context + 1
            raise InvalidSpecError(
                f"the prompt has {len(prompt)} tokens and the context {self.context}, one of them for the answer: "
                f"{over} too many; shorten it, or load the model with a larger context (at most "
                f"{self.network.config.max_position_embeddings})",
                "prompt",
            )

    @cached_property
    def _prefill_state(self) -> tuple[Batch, Buffers]:
        """Buffers of a chunk of a prompt; allocated on first use."""
        return new_batch(self._chunk), self.network.buffers(self._chunk)

    def _step(self, size: int, adjusts: bool, top: int) -> DecodeStep:
        key = size, adjusts, top
        if key not in self._steps:
            self._steps[key] = DecodeStep(self.network, self.cache, *key)
        return self._steps[key]

    def _compute(self, tokens: list[int], position: int, slot: int) -> None:
        """Prefill of one chunk; its output is in the prefill buffers."""
        import numpy as np

        count = len(tokens)
        inputs, buffers = self._prefill_state
        batch = Batch(inputs.tokens[:count], inputs.positions[:count], inputs.slots[:count], position, slot)
        values = (tokens, range(position, position + count), [slot] * count)
        with turn():
            for array, value in zip((batch.tokens, batch.positions, batch.slots), values, strict=True):
                native.copy_from_host(array, np.asarray(value, np.int32))
            self.network.forward(batch, self.cache, buffers.first(count))
