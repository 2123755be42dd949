"""WhisperWeights: the weights of a Whisper model on the device, layer by layer, from either kind of folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pygpukit.asr.config import WhisperConfig
from pygpukit.core.backend import is_sim
from pygpukit.core.errors import DTypeError, InvalidSpecError
from pygpukit.nn.linear.layer import LinearBF16
from pygpukit.nn.loading import TensorLoader
from pygpukit.nn.norm import Norm

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.nn.reads import OnProgress

TYPES = ("float32", "float16", "bfloat16")
_EPSILON = 1e-5


@dataclass
class LayerWeights:
    """One layer. qkv: queries, keys and values of self-attention in one product; cross_...: of decoders only."""

    attn_norm: Norm
    qkv: LinearBF16
    out: LinearBF16
    mlp_norm: Norm
    fc1: LinearBF16
    fc2: LinearBF16
    cross_norm: Norm | None = None
    cross_q: LinearBF16 | None = None
    cross_kv: LinearBF16 | None = None
    cross_out: LinearBF16 | None = None


class WhisperWeights:
    """The weights of one model, of one type: tables as arrays, layers as LayerWeights; None before they are loaded."""

    encoder_conv1_weight: GPUArray
    encoder_conv1_bias: GPUArray
    encoder_conv2_weight: GPUArray
    encoder_conv2_bias: GPUArray
    encoder_embed_positions: GPUArray
    encoder_layer_norm: Norm
    decoder_embed_tokens: GPUArray
    decoder_embed_positions: GPUArray
    decoder_layer_norm: Norm
    proj_out_weight: GPUArray

    def __init__(self, config: WhisperConfig) -> None:
        self.config = config
        self.encoder_layers: list[LayerWeights] = []
        self.decoder_layers: list[LayerWeights] = []

    @classmethod
    def from_safetensors(
        cls, model_path: str | os.PathLike[str], config: WhisperConfig | None = None
    ) -> WhisperWeights:
        """Of a model by name, folder or file, in the type that load() takes by default."""
        from pygpukit.models.checkpoint import open_checkpoint

        checkpoint = open_checkpoint(model_path)
        try:
            return from_checkpoint(checkpoint, config=config)
        finally:
            checkpoint.close()

    @property
    def encoder_layer_norm_weight(self) -> GPUArray:
        """The scale of the encoder's last norm; encoder_layer_norm_bias its shift; so decoder_layer_norm_..."""
        return self.encoder_layer_norm.weight

    @property
    def encoder_layer_norm_bias(self) -> GPUArray | None:
        return self.encoder_layer_norm.bias

    @property
    def decoder_layer_norm_weight(self) -> GPUArray:
        return self.decoder_layer_norm.weight

    @property
    def decoder_layer_norm_bias(self) -> GPUArray | None:
        return self.decoder_layer_norm.bias

    @property
    def dtype(self) -> str:
        """The weights' type."""
        return self.decoder_embed_tokens.dtype.name

    def summary(self) -> str:
        """Sizes in a line."""
        c = self.config
        return (
            f"Whisper: {c.encoder_layers} encoder and {c.decoder_layers} decoder layers of {c.d_model}, "
            f"{c.num_mel_bins} mel bands, {c.vocab_size} tokens, {self.dtype}"
        )


def config_of(checkpoint: Checkpoint) -> WhisperConfig:
    """The configuration of an opened model. Raises InvalidSpecError where it is no Whisper model."""
    kind = checkpoint.config.get("model_type")
    if kind != "whisper":
        raise InvalidSpecError(f"{checkpoint.name}: its model_type is {kind!r}, must be 'whisper'", "model_type")
    return WhisperConfig.from_dict({**checkpoint.config, **checkpoint.generation})


def from_checkpoint(
    checkpoint: Checkpoint,
    *,
    config: WhisperConfig | None = None,
    dtype: str | None = None,
    name: str | None = None,
    progress: bool | OnProgress = False,
) -> WhisperWeights:
    """The weights of an opened model on the current device. dtype: float32 on the simulation, else float16.

    Raises InvalidSpecError, ShapeError for tensors that are missing or of another shape, DTypeError, OutOfMemoryError.
    """
    if dtype is None:
        dtype = "float32" if is_sim() else "float16"
    if dtype not in TYPES:
        raise DTypeError(f"load: dtype is {dtype!r}, must be {', '.join(TYPES)}")
    loader = _Loader(checkpoint, config or config_of(checkpoint), dtype, name or checkpoint.name, progress)
    with loader:
        return loader.weights()


class _Loader(TensorLoader):
    def __init__(
        self, checkpoint: Checkpoint, config: WhisperConfig, dtype: str, title: str, progress: bool | OnProgress
    ) -> None:
        prefix = "model." if any(name.startswith("model.") for name in checkpoint.names()) else ""
        super().__init__(checkpoint, dtype, title, progress, prefix=prefix, what="Whisper model")
        self._config = config

    def weights(self) -> WhisperWeights:
        config, weights = self._config, WhisperWeights(self._config)
        width = config.d_model
        for number, channels in ((1, config.num_mel_bins), (2, width)):
            place = f"encoder.conv{number}"
            weight = self.table(f"{place}.weight", f"encoder/conv{number}.weight", (width, channels, 3))
            setattr(weights, f"encoder_conv{number}_weight", weight)
            bias = self.table(f"{place}.bias", f"encoder/conv{number}.bias", (width,))
            setattr(weights, f"encoder_conv{number}_bias", bias)
        for stack, positions, count in (
            ("encoder", config.max_source_positions, config.encoder_layers),
            ("decoder", config.max_target_positions, config.decoder_layers),
        ):
            table = self.table(f"{stack}.embed_positions.weight", f"{stack}/positions", (positions, width))
            setattr(weights, f"{stack}_embed_positions", table)
            setattr(weights, f"{stack}_layers", [self.layer(stack, number) for number in range(count)])
            setattr(weights, f"{stack}_layer_norm", self._norm(f"{stack}.layer_norm", f"{stack}/final_norm"))
        shape = config.vocab_size, width
        weights.decoder_embed_tokens = self.table("decoder.embed_tokens.weight", "decoder/embed_tokens", shape)
        weights.proj_out_weight = weights.decoder_embed_tokens
        return weights

    def layer(self, stack: str, number: int) -> LayerWeights:
        """One layer of the encoder or the decoder."""
        width, begin, place = self._config.d_model, f"{stack}.layers.{number}", f"{stack}/layers.{number:02d}"
        inner = self._config.encoder_ffn_dim if stack == "encoder" else self._config.decoder_ffn_dim

        def linear(label: str, columns: int, *parts: tuple[str, int]) -> LinearBF16:
            tensors = [(f"{begin}.{tensor}.weight", f"{begin}.{tensor}.bias", rows) for tensor, rows in parts]
            return self.linear(f"{place}/{label}", columns, [*tensors])

        def attention(tensor: str, label: str, kinds: str) -> LinearBF16:
            return linear(label, width, *((f"{tensor}.{kind}_proj", width) for kind in kinds))

        layer = LayerWeights(
            self._norm(f"{begin}.self_attn_layer_norm", f"{place}/attn_norm"),
            attention("self_attn", "qkv", "qkv"),
            linear("o", width, ("self_attn.out_proj", width)),
            self._norm(f"{begin}.final_layer_norm", f"{place}/mlp_norm"),
            linear("fc1", width, ("fc1", inner)),
            linear("fc2", inner, ("fc2", width)),
        )
        if stack == "decoder":
            layer.cross_norm = self._norm(f"{begin}.encoder_attn_layer_norm", f"{place}/cross_norm")
            layer.cross_q = attention("encoder_attn", "cross_q", "q")
            layer.cross_kv = attention("encoder_attn", "cross_kv", "kv")
            layer.cross_out = linear("cross_o", width, ("encoder_attn.out_proj", width))
        return layer

    def _norm(self, tensor: str, label: str) -> Norm:
        width = self._config.d_model
        return self.norm_of(f"{tensor}.weight", f"{tensor}.bias", label, width, "layernorm", _EPSILON)
