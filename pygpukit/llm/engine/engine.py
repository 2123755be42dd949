"""Engine: a network, and the loop in which all sequences of it are computed."""

from __future__ import annotations

import threading
from collections.abc import Sequence as Several
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core import ranges
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.turns import turn
from pygpukit.llm.engine.drafting import Drafting, Source
from pygpukit.llm.engine.loop import Loop
from pygpukit.llm.engine.prefill import Part, Prefill
from pygpukit.llm.engine.request import Terms
from pygpukit.llm.engine.room import BLOCK, block_size, blocks_of, new_cache
from pygpukit.llm.engine.sampling import Sampling
from pygpukit.llm.engine.sequence import Constraint, Sequence
from pygpukit.nn.kv_cache import KVCache

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.attention.buffers import AttentionBuffers
    from pygpukit.nn.linear.adapters import Adapter
    from pygpukit.nn.transformer import Cache, Transformer

_CHUNK = 512  # tokens that are passed through the layers at once where nothing is generated


class Occupancy(NamedTuple):
    """Requests that run and wait, and blocks of the KV cache: all, and those of requests that run."""

    running: int
    waiting: int
    blocks: int
    used_blocks: int


class Engine:
    """Runs sequences on one network.

    slots: sequences of the whole context that the KV cache has room for; of shorter ones, as many more. kv_memory: its
    size in their place, see blocks_of(). kv_dtype: of keys and values, "fp8" or, by default, the weights'.
    """

    def __init__(
        self,
        network: Transformer,
        slots: int = 1,
        *,
        kv_memory: str | SupportsIndex | None = None,
        kv_dtype: str | None = None,
        name: str = "model",
    ) -> None:
        self.network, self.name, self.kv_dtype = network, name, kv_dtype or network.dtype
        self._count = blocks_of(network.kept_config, self.kv_dtype, network.positions, slots, kv_memory)
        self.sources: dict[object, Source] = {}  # of drafts that networks compute for all sequences
        self._loop: Loop | None = None
        self._making = threading.Lock()

    @property
    def context(self) -> int:
        """Positions that a sequence can have."""
        return self.network.positions

    @property
    def loop(self) -> Loop:
        """All open sequences, and their keys and values; made on first use."""
        with self._making:
            if self._loop is None:
                with self.network.at_home():
                    self._loop = Loop(self.network, self._count, name=self.name, kv_dtype=self.kv_dtype)
            return self._loop

    @property
    def occupancy(self) -> Occupancy:
        """Requests and blocks of this moment; allocates nothing."""
        if self._loop is None:
            return Occupancy(0, 0, self._count, 0)
        scheduler = self._loop.scheduler
        blocks = scheduler.blocks
        return Occupancy(len(scheduler.running), len(scheduler.waiting), blocks.count, blocks.count - blocks.free)

    def open(
        self,
        prompt: list[int],
        sampling: Sampling,
        max_new_tokens: int | None = None,
        end_tokens: frozenset[int] = frozenset(),
        terms: Terms = Terms(),  # noqa: B008 - nothing of it can be changed
        constraint: Constraint | None = None,
        drafting: Drafting | None = None,
        adapter: Adapter | None = None,
    ) -> Sequence:
        """A sequence that waits for its turn: loop.next() gives its tokens, loop.close() ends it.

        max_new_tokens: at most, and by default, as many as the context has room for. terms: who asks and what they are
        promised. constraint: the form of the answer. drafting: where drafts of it come from. adapter: of this engine's
        network. Raises InvalidSpecError for a prompt that does not fit the context, saying by how much, or is empty, or
        has numbers that are no tokens;
        TaskRejectedError where too many wait.
        """
        terms.check()
        self.check(prompt)
        room = self.context - len(prompt)
        count = room if max_new_tokens is None else min(max_new_tokens, room)
        sequence = Sequence(
            list(prompt),
            count,
            terms.policy,
            terms.client,
            sampling=sampling,
            end_tokens=end_tokens,
            constraint=constraint,
            drafting=drafting,
            adapter=adapter,
        )
        self.loop.open(sequence, terms.deadline)
        sequence.open_range = ranges.begin("request", self.name, sequence.facts)
        return sequence

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

    def hidden(self, tokens: list[int]) -> GPUArray:
        """The last layer's output for a prompt, float32 (tokens, hidden). Beside the sequences: its keys are in a cache
        of its own."""
        self.check(tokens)
        with self.network.at_home():
            blocks, cache = self._blocks_of_its_own(len(tokens))
            prefill = Prefill(self.network, cache, min(_CHUNK, len(tokens)), len(blocks))
            states = factory.empty((len(tokens), self.network.config.hidden_size), "float32")
            for start in range(0, len(tokens), _CHUNK):
                part = tokens[start : start + _CHUNK]
                with turn():
                    native.copy(states[start : start + len(part)], prefill.compute([Part(part, start, blocks)]))
            return states

    def attention(self, tokens: list[int], layer: int) -> tuple[AttentionBuffers, GPUArray]:
        """Operands of the attention of a layer over a prompt: the buffers, with its queries rotated, and its keys
        (key heads, tokens, head_dim). The network has attention."""
        self.check(tokens)
        blocks, cache = self._blocks_of_its_own(len(tokens))
        prefill = Prefill(self.network, cache, len(tokens), len(blocks))
        prefill.compute([Part(tokens, 0, blocks)], layer + 1)
        assert isinstance(cache, KVCache)
        k = cache.layers[layer].keys
        heads, dim = k.shape[1], k.shape[3]
        keys = k.transpose(1, 0, 2, 3).reshape(heads, len(blocks) * BLOCK, dim)[:, : len(tokens)]
        return prefill.buffers.attention.first(len(tokens)), keys

    def _blocks_of_its_own(self, count: int) -> tuple[Several[int], Cache]:
        blocks = range(self._blocks(count))
        return blocks, new_cache(self.network, len(blocks), self.kv_dtype, f"{self.name}/beside")

    def _blocks(self, positions: int) -> int:
        return -(-positions // block_size(self.network.config, self.network.positions))
