"""A BERT (Devlin et al. 2018) that reads phonemes: layers with weights of their own, where Kokoro repeats one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.core.errors import InvalidSpecError
from pygpukit.nn.linear.layer import Linear
from pygpukit.tts.config import KokoroConfig
from pygpukit.tts.layers.layer_norm import LayerNorm
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_EPS = 1e-12


class BertSelfAttention:
    """Attention of every position to every other: (B, T, hidden) gives (B, T, heads * head)."""

    def __init__(
        self, query: Linear, key: Linear, value: Linear, num_attention_heads: int, attention_head_size: int
    ) -> None:
        self.query, self.key, self.value = query, key, value
        self.num_attention_heads, self.attention_head_size = num_attention_heads, attention_head_size
        self.all_head_size = num_attention_heads * attention_head_size

    def transpose_for_scores(self, x: GPUArray) -> GPUArray:
        """(B, T, heads * head) as (B, heads, T, head)."""
        return x.reshape(*x.shape[:2], self.num_attention_heads, self.attention_head_size).transpose(0, 2, 1, 3)

    def __call__(self, hidden_states: GPUArray, attention_mask: GPUArray | None = None) -> GPUArray:
        """attention_mask: added to the scores, (B, 1, 1, T) or what broadcasts."""
        q, k, v = (self.transpose_for_scores(part(hidden_states)) for part in (self.query, self.key, self.value))
        seen = ops.sdpa(q, k, v, mask=attention_mask).transpose(0, 2, 1, 3)
        return seen.reshape(*hidden_states.shape[:2], self.all_head_size)


class BertLayer:
    """Attention and feed-forward, each added to its input and normalised afterwards."""

    def __init__(
        self,
        attention: BertSelfAttention,
        attention_output: Linear,
        attention_norm: LayerNorm,
        intermediate: Linear,
        output_dense: Linear,
        output_norm: LayerNorm,
    ) -> None:
        self.attention, self.attention_output, self.attention_norm = attention, attention_output, attention_norm
        self.intermediate, self.output_dense, self.output_norm = intermediate, output_dense, output_norm

    def __call__(self, hidden_states: GPUArray, attention_mask: GPUArray | None = None) -> GPUArray:
        """hidden_states (B, T, hidden); attention_mask as the attention has it."""
        seen = self.attention_output(self.attention(hidden_states, attention_mask))
        attended = self.attention_norm(ops.add(seen, hidden_states))
        fed = self.output_dense(ops.gelu(self.intermediate(attended)))
        return self.output_norm(ops.add(fed, attended))


class PLBERTEncoder:
    """Embeddings of tokens and positions, then each layer. embeddings (tokens, hidden), position_embeddings (positions,
    hidden). final_norm: after the last layer."""

    def __init__(
        self,
        config: KokoroConfig,
        embeddings: GPUArray,
        position_embeddings: GPUArray,
        layers: Sequence[BertLayer],
        final_norm: LayerNorm | None = None,
    ) -> None:
        self.config, self.embeddings, self.position_embeddings = config, embeddings, position_embeddings
        self.layers, self.final_norm = list(layers), final_norm

    def __call__(self, input_ids: GPUArray, attention_mask: GPUArray | None = None) -> GPUArray:
        """(B, T, hidden) of input_ids (B, T), integers. Raises InvalidSpecError where T is more than the positions."""
        length, positions = input_ids.shape[1], self.position_embeddings.shape[0]
        if length > positions:
            raise InvalidSpecError(f"{length} tokens are given, there are {positions} positions", "input_ids")
        x = ops.add(ops.embedding(self.embeddings, input_ids), self.position_embeddings[:length])
        for layer in self.layers:
            x = layer(x, attention_mask)
        return x if self.final_norm is None else self.final_norm(x)


def build_plbert_from_weights(
    config: KokoroConfig, weights: Mapping[str, GPUArray], prefix: str = "bert"
) -> PLBERTEncoder:
    """A PLBERTEncoder of weights by their names in PyTorch's BERT, as many layers as there are.

    config: says the number of heads. "final_norm" may be missing. Raises InvalidSpecError for any other name that is
    not there, and where the heads do not divide the layer's width.
    """
    part = Part(weights, prefix)
    words, heads = part.array("embeddings.word_embeddings.weight"), config.plbert_num_attention_heads
    if words.shape[1] % heads:
        raise InvalidSpecError(
            f"{heads} heads do not divide a width of {words.shape[1]}; give a config with the model's own number",
            "plbert_num_attention_heads",
        )
    names = (f"encoder.layer.{index}" for index in count())
    layers = takewhile(lambda name: part.has(f"{name}.attention.self.query.weight"), names)
    return PLBERTEncoder(
        config,
        words,
        part.array("embeddings.position_embeddings.weight"),
        [_layer(part.of(name), heads, words.shape[1] // heads) for name in layers],
        part.layer_norm("final_norm", _EPS) if part.has("final_norm.weight") else None,
    )


def _layer(part: Part, heads: int, head_size: int) -> BertLayer:
    query, key, value = (part.linear(f"attention.self.{name}") for name in ("query", "key", "value"))
    return BertLayer(
        BertSelfAttention(query, key, value, heads, head_size),
        part.linear("attention.output.dense"),
        part.layer_norm("attention.output.LayerNorm", _EPS),
        part.linear("intermediate.dense"),
        part.linear("output.dense"),
        part.layer_norm("output.LayerNorm", _EPS),
    )
