"""The shape of a Whisper model: WhisperConfig, and the published sizes."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.models.documents import read_object
from pygpukit.nn.config import TransformerConfig

_SIZES = (
    *("d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"),
    *("encoder_ffn_dim", "decoder_ffn_dim", "vocab_size", "num_mel_bins", "max_source_positions"),
    "max_target_positions",
)


@dataclass
class WhisperConfig:
    """Sizes and tokens of a Whisper model, by the names of Hugging Face's config.json; by default large-v3's.

    suppress_tokens: never chosen; begin_suppress_tokens: never chosen first. alignment_heads: (layer, head) pairs of
    the decoder that follow the sound, for the times of words; None where they are not known.
    """

    d_model: int = 1280
    encoder_layers: int = 32
    decoder_layers: int = 32
    encoder_attention_heads: int = 20
    decoder_attention_heads: int = 20
    encoder_ffn_dim: int = 5120
    decoder_ffn_dim: int = 5120
    vocab_size: int = 51866
    num_mel_bins: int = 128
    max_source_positions: int = 1500
    max_target_positions: int = 448
    activation_function: str = "gelu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    bos_token_id: int = 50257
    eos_token_id: int = 50257
    pad_token_id: int = 50256
    decoder_start_token_id: int = 50258
    begin_suppress_tokens: list[int] = field(default_factory=lambda: [220, 50257])
    use_cache: bool = True
    torch_dtype: str = "bfloat16"
    model_name_or_path: str | None = None
    suppress_tokens: list[int] | None = None
    alignment_heads: list[list[int]] | None = None

    def __post_init__(self) -> None:
        for name in _SIZES:
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidSpecError(f"{name} is {value!r}, must be an integer above 0", name)
        for name in ("encoder_attention_heads", "decoder_attention_heads"):
            if self.d_model % getattr(self, name):
                raise InvalidSpecError(f"{name} is {getattr(self, name)}, must divide d_model, {self.d_model}", name)
        if self.activation_function != "gelu":
            raise InvalidSpecError(
                f"activation_function is {self.activation_function!r}, Whisper models have 'gelu'",
                "activation_function",
            )

    @property
    def head_dim(self) -> int:
        """Elements of one head."""
        return self.d_model // self.encoder_attention_heads

    @property
    def is_distilled(self) -> bool:
        """True if the decoder has fewer layers than the encoder."""
        return self.decoder_layers < self.encoder_layers

    @property
    def frames(self) -> int:
        """Mel frames of a window: two for each of the encoder's positions."""
        return 2 * self.max_source_positions

    def decoder(self) -> TransformerConfig:
        """The decoder by the fields that layers of language models take."""
        return TransformerConfig(
            vocab_size=self.vocab_size,
            hidden_size=self.d_model,
            num_layers=self.decoder_layers,
            num_heads=self.decoder_attention_heads,
            intermediate_size=self.decoder_ffn_dim,
            norm_type="layernorm",
            activation="gelu_erf",
            use_rope=False,
            max_position_embeddings=self.max_target_positions,
        )

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any]) -> WhisperConfig:
        """From fields of a config.json; those that are not known here are left aside, as are those that are None."""
        known = {column.name for column in fields(cls)}
        return cls(**{name: value for name, value in config_dict.items() if name in known and value is not None})

    @classmethod
    def from_json(cls, json_path: str | os.PathLike[str]) -> WhisperConfig:
        """From a config.json. Raises ModelFileError, OSError."""
        return cls.from_dict(read_object(Path(json_path)))

    @classmethod
    def from_pretrained(cls, model_path: str | os.PathLike[str]) -> WhisperConfig:
        """Of a model by name, folder or file, as load() takes it."""
        from pygpukit.models.checkpoint import open_checkpoint

        checkpoint = open_checkpoint(model_path)
        try:
            return cls.from_dict({**checkpoint.config, **checkpoint.generation, "model_name_or_path": str(model_path)})
        finally:
            checkpoint.close()

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


def _size(width: int, layers: int, **other: Any) -> WhisperConfig:
    heads = width // 64
    sizes = {
        "d_model": width,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": 4 * width,
        "decoder_ffn_dim": 4 * width,
        "vocab_size": 51865,
        "num_mel_bins": 80,
    }
    return WhisperConfig(**{**sizes, **other})


WHISPER_CONFIGS: dict[str, WhisperConfig] = {
    "tiny": _size(384, 4),
    "base": _size(512, 6),
    "small": _size(768, 12),
    "medium": _size(1024, 24),
    "large": _size(1280, 32),
    "large-v2": _size(1280, 32),
    "large-v3": _size(1280, 32, vocab_size=51866, num_mel_bins=128),
    "large-v3-turbo": _size(1280, 32, vocab_size=51866, num_mel_bins=128, decoder_layers=4),
}
