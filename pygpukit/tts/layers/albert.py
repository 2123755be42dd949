"""ALBERT (Lan et al. 2019), as Kokoro uses it: one layer, applied again and again; it reads phonemes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.nn.linear.layer import Linear
from pygpukit.tts.layers.layer_norm import LayerNorm
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray

_EPS = 1e-12


class ALBERTLayer:
    """Attention and feed-forward, each added to its input and normalised afterwards."""

    def __init__(
        self,
        query: Linear,
        key: Linear,
        value: Linear,
        attention_dense: Linear,
        attention_norm: LayerNorm,
        ffn: Linear,
        ffn_output: Linear,
        full_layer_norm: LayerNorm,
        num_attention_heads: int = 12,
        hidden_size: int = 768,
    ) -> None:
        self.query, self.key, self.value = query, key, value
        self.attention_dense, self.attention_norm = attention_dense, attention_norm
        self.ffn, self.ffn_output, self.full_layer_norm = ffn, ffn_output, full_layer_norm
        self.num_attention_heads, self.attention_head_size = num_attention_heads, hidden_size // num_attention_heads

    def transpose_for_scores(self, x: GPUArray) -> GPUArray:
        """(B, T, hidden) as (B, heads, T, head)."""
        return x.reshape(*x.shape[:2], self.num_attention_heads, self.attention_head_size).transpose(0, 2, 1, 3)

    def __call__(
        self, hidden_states: GPUArray, attention_mask: GPUArray | None = None, lengths: GPUArray | None = None
    ) -> GPUArray:
        """hidden_states (B, T, hidden). attention_mask: added to the scores, (B, 1, 1, T) or what broadcasts. lengths:
        int32 (B,), of the sentences, where some have fewer than T."""
        q, k, v = (self.transpose_for_scores(part(hidden_states)) for part in (self.query, self.key, self.value))
        seen = ops.sdpa(q, k, v, mask=attention_mask, lengths=lengths)
        seen = seen.transpose(0, 2, 1, 3).reshape(hidden_states.shape)
        attended = self.attention_norm(ops.add(self.attention_dense(seen), hidden_states))
        fed = self.ffn_output(ops.gelu(self.ffn(attended), approximate="tanh"))
        return self.full_layer_norm(ops.add(fed, attended))


class ALBERTEncoder:
    """Embeddings of tokens, positions and token type 0, mapped to the layer's width, then the layer n times."""

    def __init__(
        self,
        word_embeddings: GPUArray,
        position_embeddings: GPUArray,
        token_type_embeddings: GPUArray,
        embeddings_norm: LayerNorm,
        embedding_mapping: Linear,
        layer: ALBERTLayer,
        num_hidden_layers: int = 12,
    ) -> None:
        self.word_embeddings, self.position_embeddings = word_embeddings, position_embeddings
        self.token_type_embeddings, self.embeddings_norm = token_type_embeddings, embeddings_norm
        self.embedding_mapping, self.layer, self.num_hidden_layers = embedding_mapping, layer, num_hidden_layers

    def __call__(
        self, input_ids: GPUArray, attention_mask: GPUArray | None = None, lengths: GPUArray | None = None
    ) -> GPUArray:
        """(B, T, hidden) of input_ids (B, T), integers. attention_mask, lengths: as the layer has them."""
        x = ops.add(ops.embedding(self.word_embeddings, input_ids), self.position_embeddings[: input_ids.shape[1]])
        x = self.embedding_mapping(self.embeddings_norm(ops.add(x, self.token_type_embeddings[0])))
        for _ in range(self.num_hidden_layers):
            x = self.layer(x, attention_mask, lengths)
        return x


def build_albert_from_weights(
    weights: Mapping[str, GPUArray],
    prefix: str = "bert",
    num_hidden_layers: int = 12,
    num_attention_heads: int = 12,
    hidden_size: int = 768,
) -> ALBERTEncoder:
    """An ALBERTEncoder of weights by their PyTorch names. Raises InvalidSpecError for a name that is not there."""
    part = Part(weights, prefix)
    layer = part.of("encoder.albert_layer_groups.0.albert_layers.0")
    return ALBERTEncoder(
        part.array("embeddings.word_embeddings.weight"),
        part.array("embeddings.position_embeddings.weight"),
        part.array("embeddings.token_type_embeddings.weight"),
        part.layer_norm("embeddings.LayerNorm", _EPS),
        part.linear("encoder.embedding_hidden_mapping_in"),
        ALBERTLayer(
            layer.linear("attention.query"),
            layer.linear("attention.key"),
            layer.linear("attention.value"),
            layer.linear("attention.dense"),
            layer.layer_norm("attention.LayerNorm", _EPS),
            layer.linear("ffn"),
            layer.linear("ffn_output"),
            layer.layer_norm("full_layer_layer_norm", _EPS),
            num_attention_heads,
            hidden_size,
        ),
        num_hidden_layers,
    )
