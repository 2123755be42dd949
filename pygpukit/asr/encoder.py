"""WhisperEncoder: log-mel features to the states that the decoder listens to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.asr.config import WhisperConfig
from pygpukit.asr.weights import LayerWeights, WhisperWeights
from pygpukit.core.errors import ShapeError
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.norm import Norm
from pygpukit.ops import elementwise
from pygpukit.ops.elementwise.activation import gelu
from pygpukit.ops.nn.attention import sdpa
from pygpukit.ops.nn.conv import conv1d
from pygpukit.ops.nn.conv.tile import packed

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class WhisperEncoderLayer:
    """Self-attention over all positions, then two products with GELU between; each after a norm, each added to x."""

    def __init__(self, config: WhisperConfig, layer_weights: LayerWeights) -> None:
        self.config, self.weights = config, layer_weights
        self.d_model, self.n_heads = config.d_model, config.encoder_attention_heads
        self.head_dim = config.d_model // config.encoder_attention_heads

    def __call__(self, x: GPUArray) -> GPUArray:
        """x, float32 (B, T, d_model), after this layer; written in place and returned."""
        w, (batch, count, width) = self.weights, x.shape
        qkv = _product(w.qkv, x, w.attn_norm).reshape(batch, count, 3, self.n_heads, self.head_dim)
        q, k, v = (qkv[:, :, part].transpose(0, 2, 1, 3) for part in range(3))
        heads = sdpa(q, k, v).transpose(0, 2, 1, 3).reshape(batch, count, width)
        elementwise.add(x, w.out(heads), out=x)
        between = _product(w.fc1, x, w.mlp_norm)
        return elementwise.add(x, w.fc2(gelu(between, out=between)), out=x)


class WhisperEncoder:
    """Two convolutions, positions, layers and a norm."""

    def __init__(self, config: WhisperConfig, weights: WhisperWeights) -> None:
        self.config, self.weights = config, weights
        self.d_model, self.n_layers = config.d_model, config.encoder_layers
        self.layers = [WhisperEncoderLayer(config, layer) for layer in weights.encoder_layers]
        self._first, self._second = packed(weights.encoder_conv1_weight), packed(weights.encoder_conv2_weight)

    def __call__(self, mel: GPUArray) -> GPUArray:
        """mel, (B, bands, 2 T) or (bands, 2 T), gives the weights' type (B, T, d_model), T = max_source_positions.

        A window's bits do not depend on the others. Raises ShapeError.
        """
        w, config = self.weights, self.config
        mel = mel if mel.ndim == 3 else mel[None]
        if mel.shape[1:] != (config.num_mel_bins, config.frames):
            raise ShapeError(
                f"WhisperEncoder: mel has shape {mel.shape}, must be (B, {config.num_mel_bins}, {config.frames})"
            )
        x = conv1d(mel.astype(w.dtype), self._first, w.encoder_conv1_bias, padding=1, act="gelu")
        x = conv1d(x, self._second, w.encoder_conv2_bias, stride=2, padding=1, act="gelu")
        x = elementwise.add(x.transpose(0, 2, 1).astype("float32"), w.encoder_embed_positions)
        for layer in self.layers:
            x = layer(x)
        return w.encoder_layer_norm(x).astype(w.dtype)


def create_encoder(config: WhisperConfig, weights: WhisperWeights) -> WhisperEncoder:
    """WhisperEncoder(config, weights)."""
    return WhisperEncoder(config, weights)


def _product(linear: LinearBF16, x: GPUArray, norm: Norm) -> GPUArray:
    return linear(norm(x).astype(linear.weight.dtype))
