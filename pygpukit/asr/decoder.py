"""WhisperDecoder: tokens and what the encoder heard to logits, over caches that keep what does not change."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pygpukit.array import factory
from pygpukit.asr.config import WhisperConfig
from pygpukit.asr.step import DecoderStep, rows_for
from pygpukit.asr.weights import LayerWeights, WhisperWeights
from pygpukit.core.elsewhere import Elsewhere
from pygpukit.core.errors import InvalidSpecError, ShapeError
from pygpukit.nn.attention.buffers import AttentionBuffers
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.batch import Batch, Span
from pygpukit.nn.config import TransformerConfig
from pygpukit.nn.embedding import embed
from pygpukit.nn.kv_cache import LayerCache
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.linear.residual import add_product
from pygpukit.nn.mlp import MLP
from pygpukit.nn.norm import Norm
from pygpukit.ops import copying
from pygpukit.ops.matmul.gemm import matmul

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.array.array import GPUArray

    Array = np.ndarray[Any, Any]


class DecoderCache:
    """Keys and values: of sequences, a slot each, and of the windows that they listen to, each once for all layers."""

    def __init__(self, config: WhisperConfig, slots: int, windows: int, dtype: str, name: str) -> None:
        heads = config.decoder_attention_heads
        dim = config.d_model // heads
        self.slots, self.windows = slots, windows
        self.steps: dict[int, DecoderStep] = {}  # by how many rows they have
        self.self_attention, self.heard = (
            [
                LayerCache(*(factory.zeros((count, heads, positions, dim), dtype) for _ in "kv"))
                for _ in range(config.decoder_layers)
            ]
            for count, positions in ((slots, config.max_target_positions), (windows, config.max_source_positions))
        )
        for kind, layers in (("self", self.self_attention), ("cross", self.heard)):
            for number, layer in enumerate(layers):
                place = f"{name}/decoder/layers.{number:02d}/{kind}"
                layer.k.name, layer.v.name = f"{place}.k", f"{place}.v"

    def copy_slot(self, source: int, target: int, positions: int) -> None:
        """The first positions of one sequence, for another that goes on from there."""
        for layer in self.self_attention:
            for array in (layer.k, layer.v):
                copying.copy_to(array[source, :, :positions], array[target, :, :positions])


class CrossAttention(Attention):
    """Attention over what the encoder heard; qkv_proj gives queries only, keys and values are in the cache already."""

    def listen(
        self, x: GPUArray, rows: Batch, heard: Batch, norm: Norm, cache: LayerCache, buffers: AttentionBuffers
    ) -> None:
        """x += attention(norm(x)): x float32 (R, hidden). heard: for each row the last position, and its window."""
        self.qkv_proj.project(x, buffers.qkv, rows.start, norm=norm, overlaps=rows.decodes)
        self.attend(heard, cache, buffers)
        add_product(x, self.o_proj, buffers.out, rows.start)


@dataclass
class Buffers:
    """The buffers of a pass over R rows: the residual stream, float32 (R, hidden), and what lies between its layers."""

    x: GPUArray
    self_attention: AttentionBuffers
    cross: AttentionBuffers
    between: GPUArray


class WhisperDecoderLayer:
    """Causal self-attention, attention over the encoder's states, two products with GELU between."""

    def __init__(self, config: WhisperConfig, layer_weights: LayerWeights) -> None:
        w = layer_weights
        if w.cross_norm is None or w.cross_q is None or w.cross_kv is None or w.cross_out is None:
            raise InvalidSpecError("a decoder's layer needs weights of cross-attention", "layer_weights")
        self.config, self.weights = config, w
        self.d_model, self.n_heads = config.d_model, config.decoder_attention_heads
        self.head_dim = config.d_model // config.decoder_attention_heads
        shape: TransformerConfig = config.decoder()
        self._norm, self._cross_norm, self.cross_kv = w.attn_norm, w.cross_norm, w.cross_kv
        self._attention = Attention(w.qkv, None, None, w.out, shape)
        self.cross = CrossAttention(w.cross_q, None, None, w.cross_out, shape)
        self._mlp = MLP(shape, w.fc1.weight, w.fc1.bias, w.fc2.weight, w.fc2.bias)

    def forward(self, rows: Batch, heard: Batch, self_cache: LayerCache, cross: LayerCache, buffers: Buffers) -> None:
        """buffers.x after this layer."""
        self._attention.forward(buffers.x, rows, self._norm, self_cache, None, buffers.self_attention)
        self.cross.listen(buffers.x, rows, heard, self._cross_norm, cross, buffers.cross)
        self._mlp.forward(buffers.x, rows.start, self.weights.mlp_norm, buffers.between)

    def hear(self, states: GPUArray, cache: LayerCache, window: int) -> None:
        """Keys and values of the encoder's states (T, d_model) into the cache."""
        both = self.cross_kv(states).reshape(states.shape[0], 2, self.n_heads, self.head_dim)
        for part, array in enumerate((cache.k, cache.v)):
            copying.copy_to(both[:, part].transpose(1, 0, 2), array[window])


class WhisperDecoder:
    """Embedding and positions, layers, a norm, and the product with the embedding."""

    def __init__(self, config: WhisperConfig, weights: WhisperWeights) -> None:
        self.config, self.weights = config, weights
        self.d_model, self.n_layers, self.vocab_size = config.d_model, config.decoder_layers, config.vocab_size
        self.layers = [WhisperDecoderLayer(config, layer) for layer in weights.decoder_layers]
        self._head = LinearBF16(weights.proj_out_weight)

    def cache(self, slots: int, windows: int, name: str = "whisper") -> DecoderCache:
        """New caches for so many sequences that listen to so many windows."""
        return DecoderCache(self.config, slots, windows, self.weights.dtype, name)

    def hear(self, states: GPUArray, cache: DecoderCache, window: int) -> None:
        """Let the sequences of a window listen to the encoder's states (T, d_model)."""
        for layer, heard in zip(self.layers, cache.heard, strict=True):
            layer.hear(states, heard, window)

    def prompt(self, tokens: Sequence[int], slot: int, window: int, cache: DecoderCache) -> GPUArray:
        """The tokens from position 0 into a slot: the last layer's output, float32 (tokens, d_model)."""
        count = len(tokens)
        rows = _rows(tokens, range(count), [slot] * count, 0)
        return self.run(rows, self.heard([window] * count), cache, self.buffers(count))

    def attention(
        self,
        tokens: Sequence[int],
        slot: int,
        window: int,
        cache: DecoderCache,
        heads: Sequence[Sequence[int]],
        positions: int,
    ) -> tuple[GPUArray, Array]:
        """prompt(), and what (layer, head) pairs of it listened to: scores before the softmax, float32
        (pairs, tokens, positions), on the host. Of the window's positions the first are taken."""
        import numpy as np

        scores: list[Array] = [np.zeros((0, 0))] * len(heads)

        def look(number: int, buffers: Buffers) -> None:
            queries = buffers.cross.qkv.reshape(len(tokens), -1, self.layers[number].head_dim)
            for place, (layer, head) in enumerate(heads):
                if layer == number:
                    keys = cache.heard[number].k[window, head, :positions]
                    logits = matmul(queries[:, head].astype("float32"), keys.astype("float32").T)
                    scores[place] = logits.to_numpy() / np.float32(math.sqrt(self.layers[number].head_dim))

        count = len(tokens)
        rows = _rows(tokens, range(count), [slot] * count, 0)
        x = self.run(rows, self.heard([window] * count), cache, self.buffers(count), look)
        return x, np.stack(scores)

    def step(
        self, tokens: Sequence[int], positions: Sequence[int], slots: Sequence[int], windows: Sequence[int],
        cache: DecoderCache,
    ) -> GPUArray:  # fmt: skip
        """One token for each of several slots: the logits after it, float32 (tokens, vocabulary).

        They are there until the next step.
        """
        rows = rows_for(len(tokens))
        if rows not in cache.steps:
            cache.steps[rows] = DecoderStep(self, cache, rows)
        return cache.steps[rows].run(tokens, positions, slots, windows)

    def logits(self, x: GPUArray) -> GPUArray:
        """float32 (R, vocabulary) of rows of the last layer's output; each row for itself."""
        out = factory.empty((x.shape[0], self.vocab_size), "float32")
        self.head(x, out)
        return out

    def head(self, x: GPUArray, out: GPUArray) -> None:
        """logits() into an array."""
        self._head.project(x, out, None, norm=self.weights.decoder_layer_norm)

    def __call__(
        self, input_ids: Sequence[int], encoder_hidden_states: GPUArray, past_key_values: None = None
    ) -> GPUArray:
        """The logits after each token of one sequence from its start, float32 (tokens, vocabulary).

        encoder_hidden_states: (1, T, d_model) or (T, d_model). past_key_values must be None: WhisperModel.transcribe()
        keeps its own. Raises InvalidSpecError, ShapeError.
        """
        if past_key_values is not None:
            raise InvalidSpecError(
                "past_key_values must be None; transcribe() has a cache of its own", "past_key_values"
            )
        states = self.states_of(encoder_hidden_states)
        tokens = [int(token) for token in input_ids]
        if not 0 < len(tokens) <= self.config.max_target_positions:
            max_positions = self.config.max_target_positions
            raise InvalidSpecError(f"there are {len(tokens)} tokens, must be 1 to {max_positions}", "input_ids")
        cache = self.cache(1, 1)
        self.hear(states, cache, 0)
        return self.logits(self.prompt(tokens, 0, 0, cache))

    generate = Elsewhere("pygpukit.compat.decoding.whisper")  # documented

    def states_of(self, states: GPUArray) -> GPUArray:
        """An encoder's states as (T, d_model). Raises ShapeError for what is none."""
        states = states[0] if states.ndim == 3 and states.shape[0] == 1 else states
        expected = self.config.max_source_positions, self.d_model
        if states.shape != expected:
            raise ShapeError(f"the encoder's states have shape {states.shape}, must be {expected}")
        return states

    def heard(self, windows: Sequence[int]) -> Batch:
        """Batch that listen to these windows, to all of each."""
        count = len(windows)
        return _rows([0] * count, [self.config.max_source_positions - 1] * count, windows, None)

    def run(
        self,
        rows: Batch,
        heard: Batch,
        cache: DecoderCache,
        buffers: Buffers,
        look: Callable[[int, Buffers], None] = lambda number, buffers: None,
    ) -> GPUArray:
        """The last layer's output, buffers.x. look: called after each layer."""
        embed(rows, self.weights.decoder_embed_tokens, self.weights.decoder_embed_positions, buffers.x)
        for number, layer in enumerate(self.layers):
            layer.forward(rows, heard, cache.self_attention[number], cache.heard[number], buffers)
            look(number, buffers)
        return buffers.x

    def buffers(self, count: int) -> Buffers:
        """For a step over so many rows."""
        width, inner, dtype = self.d_model, self.config.decoder_ffn_dim, self.weights.dtype
        heads = self.config.decoder_attention_heads
        return Buffers(
            factory.empty((count, width), "float32"),
            AttentionBuffers.of(count, 3 * width, width, heads, dtype),
            AttentionBuffers.of(count, width, width, heads, dtype),
            factory.empty((count, inner), dtype),
        )


def create_decoder(config: WhisperConfig, weights: WhisperWeights) -> WhisperDecoder:
    """WhisperDecoder(config, weights)."""
    return WhisperDecoder(config, weights)


def _rows(tokens: Sequence[int], positions: Sequence[int], slots: Sequence[int], first: int | None) -> Batch:
    import numpy as np

    where = [factory.from_numpy(np.asarray(values, np.int32)) for values in (tokens, positions, slots)]
    spans = () if first is None else (Span(0, len(tokens), first, slots[0]),)
    return Batch(where[0], where[1], where[2], spans)
