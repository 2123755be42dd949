"""The text encoder: what is said, as features of each phoneme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pygpukit.ops as ops
from pygpukit.ops.nn.spans import Spans
from pygpukit.tts.layers.activation import leaky_relu
from pygpukit.tts.layers.convolution import Conv1d
from pygpukit.tts.layers.layer_norm import LayerNorm
from pygpukit.tts.layers.lstm import LSTM
from pygpukit.tts.parts import Part

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class KokoroTextEncoder:
    """Embedding, convolutions each with a norm across channels and a leaky ReLU, and an LSTM in both directions."""

    def __init__(self, embedding: GPUArray, cnn_layers: Sequence[tuple[Conv1d, LayerNorm]], lstm: LSTM) -> None:
        self.embedding, self.cnn_layers, self.lstm = embedding, list(cnn_layers), lstm

    def __call__(self, input_ids: GPUArray, spans: Spans | None = None) -> GPUArray:
        """(B, T, 512) of input_ids (B, T), integers. spans: where among the B T tokens the sentences are; the rest
        is padding."""
        x = self._padded(ops.embedding(self.embedding, input_ids), spans)
        for conv, norm in self.cnn_layers:
            seen = conv(x.transpose(0, 2, 1)).transpose(0, 2, 1)
            x = self._padded(leaky_relu(norm(seen), 0.2), spans)
        return over_tokens(self.lstm, x, spans)

    @staticmethod
    def _padded(x: GPUArray, spans: Spans | None) -> GPUArray:
        """Zero where there is padding."""
        return x if spans is None else ops.where(spans.inside.reshape(*x.shape[:2], 1), x, 0.0)


def over_tokens(lstm: LSTM, x: GPUArray, spans: Spans | None) -> GPUArray:
    """The states of x (B, T, C) at every token, each sentence for itself."""
    if spans is None:
        return lstm(x)[0]
    return lstm(x.reshape(1, -1, x.shape[2]), spans=spans)[0].reshape(*x.shape[:2], -1)


def build_text_encoder_from_weights(weights: Mapping[str, GPUArray], prefix: str = "text_encoder") -> KokoroTextEncoder:
    """A KokoroTextEncoder of weights by their PyTorch names. Raises InvalidSpecError for a name that is not there."""
    part = Part(weights, prefix)
    layers: list[tuple[Conv1d, LayerNorm]] = []
    while part.has(f"cnn.{len(layers)}.0.weight"):
        name = f"cnn.{len(layers)}"
        kernel = part.array(f"{name}.0.weight").shape[2]
        norm = LayerNorm(part.array(f"{name}.1.gamma"), part.array(f"{name}.1.beta"))
        layers.append((part.conv(f"{name}.0", padding=kernel // 2), norm))
    return KokoroTextEncoder(part.array("embedding.weight"), layers, part.lstm("lstm"))
