"""CausalTransformerModel: layers, cache and the steps over them; what it says is in generation (text in, text out)."""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit._core import native
from pygpukit.array import factory
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.generating import Generating
from pygpukit.nn import rope
from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.batch import Batch
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.embedding import embed
from pygpukit.nn.kv_cache import KVCache
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.norm import Norm

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray
    from pygpukit.llm.models.spec import ModelSpec
    from pygpukit.models.tokenizer.tokenizer import Tokenizer
    from pygpukit.nn.linear.blocks import Blocks


@dataclass
class Buffers:
    """What a step over R rows writes: the stream that layers add to, float32 (R, hidden), and what lies between."""

    x: GPUArray
    attention: AttentionBuffers
    between: GPUArray

    def first(self, count: int) -> Buffers:
        """Views of the first rows."""
        return Buffers(self.x[:count], self.attention.first(count), self.between[:count])


def check_room(context: int | None, slots: int) -> None:
    """Raises InvalidSpecError where context or slots is no whole number of 1 or more; context may be None."""
    for name, value in (("context", 1 if context is None else context), ("slots", slots)):
        wanted = "a whole number of 1 or more"
        if whole(value, name, wanted) < 1:
            raise InvalidSpecError(f"{name}={value!r}; give {wanted}", name)


class CausalTransformerModel(Generating):
    """A causal language model on the device.

    embed_tokens: (vocabulary, hidden). lm_head: the same shape, or None where it is embed_tokens. All weights are of
    one type, float32, float16 or bfloat16; what layers add to is float32. load() and load_model_from_safetensors()
    make models from files; this constructor takes layers.

    context: positions a sequence can have; slots: sequences that can be open at once. The cache for them is made on
    first use. tokenizer: for text in and out; without one, token ids only.
    """

    def __init__(
        self,
        config: TransformerConfig,
        embed_tokens: GPUArray | Blocks,
        blocks: Sequence[TransformerBlock],
        final_norm: Norm,
        lm_head: GPUArray | Blocks | None = None,
        position_embed: GPUArray | None = None,
        spec: ModelSpec | None = None,
        *,
        name: str = "model",
        tokenizer: Tokenizer | None = None,
        generation: dict[str, Any] | None = None,
        context: int | None = None,
        slots: int = 1,
    ) -> None:
        if config.is_moe:
            raise InvalidSpecError("mixtures of experts are not there yet", "num_experts")
        check_room(context, slots)
        self.config, self.spec, self.name = config, spec, name
        self.embed_tokens, self.position_embed, self.blocks = embed_tokens, position_embed, list(blocks)
        self.final_norm, self.tokenizer = final_norm, tokenizer
        self.generation = dict(generation or {})
        self._head = LinearBF16(embed_tokens if lm_head is None else lm_head)
        most = config.max_position_embeddings
        self.context = most if context is None else min(operator.index(context), most)
        self._slots = operator.index(slots)
        self._cache: KVCache | None = None
        self._tables = rope.tables(config, self.context)
        self._making = threading.Lock()
        self.lock = threading.RLock()  # held for each step: a model's buffers serve one at a time

    @property
    def lm_head(self) -> GPUArray | Blocks:
        """The weight that gives logits; embed_tokens itself where they are tied."""
        return self._head.weight

    @property
    def dtype(self) -> str:
        """The weights' type."""
        return self.embed_tokens.dtype.name

    @property
    def cache(self) -> KVCache:
        """Keys and values of all open sequences."""
        with self._making:
            if self._cache is None:
                self._cache = KVCache(self.config, self._slots, self.context, self.dtype, self.name)
            return self._cache

    def buffers(self, count: int) -> Buffers:
        """New buffers for steps of up to count rows."""
        config, dtype = self.config, self.dtype
        q_dim = config.num_heads * config.head_dim
        qkv = q_dim + 2 * config.kv_heads * config.head_dim
        return Buffers(
            factory.zeros((count, config.hidden_size)),
            AttentionBuffers.of(count, qkv, q_dim, config.num_heads, dtype),
            factory.zeros((count, config.ffn_size), dtype),
        )

    def forward(self, batch: Batch, buffers: Buffers) -> None:
        """All layers over some rows: buffers.x then holds the last layer's output, the cache their keys and values."""
        embed(batch, self.embed_tokens, self.position_embed, buffers.x)
        for block, cache in zip(self.blocks, self.cache.layers, strict=True):
            block.forward(buffers.x, batch, cache, self._tables, buffers.attention, buffers.between)

    def head(self, x: GPUArray, logits: GPUArray, bests: GPUArray | None = None, *, overlaps: bool = False) -> None:
        """logits, float32 (R, vocabulary), of rows of forward()'s output; each row for itself.

        bests: of one row, new_bests(), for Sampler.choose(). overlaps: as LinearBF16.project()'s.
        """
        self._head.project(x, logits, None, norm=self.final_norm, overlaps=overlaps, bests=bests)

    def new_bests(self) -> GPUArray | None:
        """Room for what head() finds out about the largest logits of one row; None where it finds out nothing."""
        return self._head.new_bests()

    def get_logits(self, hidden: GPUArray) -> GPUArray:
        """The float32 logits (R, vocabulary) of rows (R, hidden) of the last layer's output."""
        logits = factory.empty((hidden.shape[0], self.config.vocab_size), "float32")
        self.head(hidden if hidden.dtype.name == "float32" else hidden.astype("float32"), logits)
        return logits

    def __call__(
        self,
        input_ids: Sequence[int],
        position_ids: None = None,
        past_key_values: None = None,
        use_cache: bool = False,
    ) -> tuple[GPUArray, None]:
        """The last layer's output for token ids, float32 (tokens, hidden), before the final norm; and None.

        get_logits() turns it into logits. Positions count from 0, and keys and values stay the model's own:
        position_ids and past_key_values must be None, use_cache False; generate() and stream() have a cache.
        Raises InvalidSpecError.
        """
        for name, value in (("position_ids", position_ids), ("past_key_values", past_key_values)):
            if value is not None:
                raise InvalidSpecError(f"{name} must be None; generate() and stream() keep positions and cache", name)
        if use_cache:
            raise InvalidSpecError("use_cache must be False here; generate() and stream() have a cache", "use_cache")
        ids = [whole(token, "input_ids", "token ids, whole numbers") for token in input_ids]
        with self.lock:
            return self.engine.hidden(ids), None

    def init_decode_graph(self, max_seq_len: int | None = None) -> None:
        """Capture the step of one greedy sequence now, not at its first token. max_seq_len: at most the context."""
        if max_seq_len is not None and max_seq_len > self.context:
            raise InvalidSpecError(f"max_seq_len is {max_seq_len}, the context {self.context}", "max_seq_len")
        with self.lock:
            self.engine.prepare()

    def snapshot_kv_cache(self) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        """Keys and values of every layer, copied to the host, (slots, key heads, positions, head_dim) each."""
        with self.lock:
            return [(layer.k.to_numpy(), layer.v.to_numpy()) for layer in self.cache.layers]

    def restore_kv_cache(self, snapshot: Sequence[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]) -> None:
        """Put back what snapshot_kv_cache() gave. Raises InvalidSpecError for another model's."""
        layers = self.cache.layers
        given = [(k.shape, v.shape) for k, v in snapshot]
        if given != [(layer.k.shape, layer.v.shape) for layer in layers]:
            raise InvalidSpecError("the snapshot is of a cache of another shape", "snapshot")
        with self.lock:
            for layer, (k, v) in zip(layers, snapshot, strict=True):
                native.copy_from_host(layer.k, k)
                native.copy_from_host(layer.v, v)

    def init_jacobi_decode(self, lookahead_k: int = 4, max_seq_len: int = 512) -> None:
        """Documented; not there yet: raises InvalidSpecError."""
        raise InvalidSpecError("Jacobi decoding is not there yet, as all speculation; see docs/llm.md", "lookahead_k")

    def __repr__(self) -> str:
        c = self.config
        return (
            f"CausalTransformerModel({self.name!r}, layers={c.num_layers}, hidden={c.hidden_size}, "
            f"heads={c.num_heads}/{c.kv_heads}, vocabulary={c.vocab_size}, dtype={self.dtype}, context={self.context})"
        )


GPT2Model = LlamaModel = CausalTransformerModel
