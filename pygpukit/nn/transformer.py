"""Transformer: embedding, layers, final norm and logits over a KV cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.device import current_device
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.stream import Stream
from pygpukit.nn import rope
from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.block import Layer, TransformerBlock
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.embedding import embed
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.norm import Norm
from pygpukit.ops.elementwise import mul
from pygpukit.ops.elementwise.math import tanh

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.nn.batch import Batch
    from pygpukit.nn.kv_cache import KVCache
    from pygpukit.nn.linear.blocks import Blocks
    from pygpukit.nn.mamba.cache import StateCache
    from pygpukit.nn.parallel.cache import PartedCache
    from pygpukit.nn.streaming import LayerStreaming

Cache: TypeAlias = "KVCache | StateCache | PartedCache"  # what is kept of each sequence between passes


class Captured(Protocol):
    """The result of capture(): a Graph, or one of each device."""

    def launch(self) -> None:
        """Run it, asynchronously."""


@dataclass
class Buffers:
    """The buffers of a pass over R rows: the residual stream, float32 (R, hidden), and what lies between its layers."""

    x: GPUArray
    attention: AttentionBuffers
    between: GPUArray

    def first(self, count: int) -> Buffers:
        """Views of the first rows."""
        return Buffers(self.x[:count], self.attention.first(count), self.between[:count])

    def forget(self) -> None:
        """A step was broken off: what the next one counts on is as if there had been none."""
        native.fill(self.attention.counters, bytes(4))


class Transformer:
    """A causal transformer on the device; it keeps no sequences, which are an engine's.

    embed_tokens: (vocabulary, hidden). lm_head: the same shape, or None where it is embed_tokens. All weights are of
    one type, float32, float16 or bfloat16; the residual stream is float32. positions: that a sequence can have.
    streaming: of layers whose weights are on the host. first_layer: the number of the first block.
    """

    def __init__(
        self,
        config: TransformerConfig,
        embed_tokens: GPUArray | Blocks,
        blocks: Sequence[Layer],
        final_norm: Norm,
        lm_head: GPUArray | Blocks | None = None,
        position_embed: GPUArray | None = None,
        positions: int | None = None,
        streaming: LayerStreaming | None = None,
        first_layer: int = 0,
    ) -> None:
        self.config, self.streaming, self.first_layer = config, streaming, first_layer
        self.device, self.recoveries = native.current_device(), 0
        self.embed_tokens, self.position_embed, self.blocks = embed_tokens, position_embed, list(blocks)
        self.final_norm = final_norm
        self.positions = min(positions or config.max_position_embeddings, config.max_position_embeddings)
        self.rope_tables = rope.tables(config, self.positions)
        self._local_tables = rope.local_tables(config, self.positions)
        self._head = LinearBF16(embed_tokens if lm_head is None else lm_head)

    @property
    def lm_head(self) -> GPUArray | Blocks:
        """The weight that gives logits; embed_tokens itself where they are tied."""
        return self._head.weight

    @property
    def dtype(self) -> str:
        """The weights' type."""
        return self.embed_tokens.dtype.name

    def attention_blocks(self, what: str, argument: str) -> list[TransformerBlock]:
        """All layers, for what looks into them. Raises InvalidSpecError, naming both, where some keep states."""
        self.check_keys(what, argument)
        return [block for block in self.blocks if isinstance(block, TransformerBlock)]

    def check_keys(self, what: str, argument: str) -> None:
        """Raises InvalidSpecError for what needs keys and values, naming it, where layers keep states."""
        if self.config.state_space is not None:
            raise InvalidSpecError(
                f"{what} needs layers with attention, and those of this model keep a state of each sequence in the "
                "place of keys and values",
                argument,
            )

    def buffers(self, count: int) -> Buffers:
        """New buffers for steps of up to count rows."""
        config, dtype = self.config, self.dtype
        heads, kv_heads, between = config.num_heads, config.kv_heads, config.ffn_size
        if config.state_space is not None:  # whose layers need none of these
            heads = kv_heads = between = 0
        q_dim = heads * config.head_dim
        return Buffers(
            factory.zeros((count, config.hidden_size)),
            AttentionBuffers.of(count, q_dim + 2 * kv_heads * config.head_dim, q_dim, heads, dtype),
            factory.zeros((count, between), dtype),
        )

    def forward(self, batch: Batch, cache: Cache, buffers: Buffers, layers: int | None = None) -> None:
        """The batch through the layers, the first of them or all: buffers.x then holds the last one's output, the cache
        the keys and values, or the states."""
        for _ in self.stages(batch, cache, buffers, layers):
            pass

    def stages(self, batch: Batch, cache: Cache, buffers: Buffers, layers: int | None = None) -> Iterator[None]:
        """forward(), a layer whenever it is asked for the next."""
        self.embed(batch, buffers.x)
        if self.config.embedding_scale != 1.0:
            mul(buffers.x, self.config.embedding_scale, out=buffers.x)
        yield from self.pass_layers(batch, cache, buffers, layers)

    def embed(self, batch: Batch, out: GPUArray) -> None:
        """The rows of tokens, and of learned positions."""
        embed(batch, self.embed_tokens, self.position_embed, out)

    def pass_layers(self, batch: Batch, cache: Cache, buffers: Buffers, layers: int | None) -> Iterator[None]:
        """buffers.x through the layers, of those with a number below `layers`; each when it is asked for."""
        for place, block in enumerate(self.blocks):
            number = self.first_layer + place
            if layers is not None and number >= layers:
                break
            tables = self._tables_of(number)
            with nullcontext() if self.streaming is None else self.streaming.layer(number):
                block.forward(buffers.x, batch, cache.layers[place], tables, buffers.attention, buffers.between)
            yield

    def head(
        self, x: GPUArray, logits: GPUArray, bests: GPUArray | None = None, *, passed: Buffers | None = None
    ) -> None:
        """logits, float32 (R, vocabulary), of rows of forward()'s output; each row for itself.

        bests: of one row, new_bests(), for Sampler.choose(). passed: the buffers of the pass that gave x, where nothing
        was launched since; the product then begins while it ends.
        """
        overlaps = passed is not None
        self._head.project(x, logits, None, norm=self.final_norm, overlaps=overlaps, bests=bests)
        scale, cap = self.config.logit_scale, self.config.logit_cap
        if cap is not None:
            mul(tanh(mul(logits, scale / cap)), cap, out=logits)
        elif scale != 1.0:
            mul(logits, scale, out=logits)

    def new_bests(self) -> GPUArray | None:
        """Room for what head() finds out about the largest logits of one row; None where it finds out nothing, as where
        they change after their product, or their norm is not part of it."""
        changes = self.config.logit_scale != 1.0 or self.config.logit_cap is not None
        changes |= self.final_norm.operation is not None
        return None if changes else self._head.new_bests()

    @property
    def parts(self) -> Sequence[Transformer]:
        """The part of each device: itself, where there is one."""
        return [self]

    @property
    def at_once(self) -> int:
        """Devices that compute a layer together."""
        return 1

    def at_home(self) -> AbstractContextManager[None]:
        """`with network.at_home():` work goes to its device."""
        return current_device(self.device)

    def capture(self, compute: Callable[[], None]) -> Captured:
        """The graph of what a function launches on the network's device."""
        stream = Stream()
        with stream.capture() as graph:
            compute()
        return graph

    def check(self) -> None:
        """Raises what kernels reported of the passes that have ended."""

    def recover(self) -> None:
        """A pass or a step was broken off: the next one finds the network as it was. Where recoveries has grown, graphs
        that were captured before are of no use."""

    def new_caches(self, make: Callable[[Transformer, str], Cache], name: str) -> Cache:
        """A cache of the layers, made and named by a function."""
        return make(self, name)

    @property
    def kept_config(self) -> TransformerConfig:
        """The configuration by which its device keeps keys and values, or states."""
        return self.config

    def _tables_of(self, layer: int) -> rope.Tables | None:
        """The rotation of a layer."""
        if not self.config.rotates(layer):
            return None
        is_local = self._local_tables is not None and self.config.window_of(layer) is not None
        return self._local_tables if is_local else self.rope_tables
