"""The configuration of Kokoro-82M: sizes of its parts, as its config.json has them."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pygpukit.core.errors import ModelFileError
from pygpukit.models.documents import read_object
from pygpukit.tts.vocabulary import DEFAULT_VOCAB

# Fields of config.json that are in tables of their own, with the prefix that they have here.
_NESTED = {"istftnet": "", "plbert": "plbert_"}


@dataclass
class KokoroConfig:
    """Sizes of Kokoro. The defaults are Kokoro-82M's; dropout is for training and does nothing here."""

    dim_in: int = 64
    hidden_dim: int = 512
    style_dim: int = 128
    n_mels: int = 80
    n_layer: int = 3
    n_token: int = 178
    max_dur: int = 50
    dropout: float = 0.2
    max_conv_dim: int = 512
    text_encoder_kernel_size: int = 5
    multispeaker: bool = True
    sample_rate: int = 24000
    upsample_rates: tuple[int, ...] = (10, 6)
    upsample_kernel_sizes: tuple[int, ...] = (20, 12)
    resblock_kernel_sizes: tuple[int, ...] = (3, 7, 11)
    resblock_dilation_sizes: tuple[tuple[int, ...], ...] = ((1, 3, 5), (1, 3, 5), (1, 3, 5))
    upsample_initial_channel: int = 512
    gen_istft_n_fft: int = 20
    gen_istft_hop_size: int = 5
    plbert_hidden_size: int = 768
    plbert_num_attention_heads: int = 12
    plbert_intermediate_size: int = 2048
    plbert_max_position_embeddings: int = 512
    plbert_num_hidden_layers: int = 12
    plbert_dropout: float = 0.1
    vocab: dict[str, int] = field(default_factory=lambda: dict(DEFAULT_VOCAB))

    @property
    def plbert_head_dim(self) -> int:
        """Width of an attention head."""
        return self.plbert_hidden_size // self.plbert_num_attention_heads

    @property
    def hop_length(self) -> int:
        """Samples of a frame of fundamental frequency: 300, an eightieth of a second."""
        total = self.gen_istft_hop_size
        for rate in self.upsample_rates:
            total *= rate
        return total

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any]) -> KokoroConfig:
        """From the fields of a config.json, the tables `istftnet` and `plbert` included; others are left alone."""
        known = {each.name for each in fields(cls)}
        values: dict[str, Any] = {}
        for key, value in config_dict.items():
            if key in _NESTED and isinstance(value, dict):
                values |= {_NESTED[key] + name: inner for name, inner in value.items()}
            else:
                values[key] = value
        return cls(**{key: _as_tuple(value) for key, value in values.items() if key in known})

    @classmethod
    def from_json(cls, json_path: str | os.PathLike[str]) -> KokoroConfig:
        """From a config.json. Raises ModelFileError for what is no JSON object."""
        return cls.from_dict(read_object(Path(json_path)))

    @classmethod
    def from_pretrained(cls, model_path: str | os.PathLike[str]) -> KokoroConfig:
        """From the config.json of a folder, or beside a file; Kokoro-82M's where there is none but the vocabulary."""
        folder = Path(model_path)
        folder = folder if folder.is_dir() else folder.parent
        for name in ("config.json", "vocab.json"):
            if (folder / name).is_file():
                return cls.from_json(folder / name)
        if not folder.is_dir():
            raise ModelFileError(f"{model_path}: there is no such folder", str(model_path))
        return cls()

    def to_dict(self) -> dict[str, Any]:
        """All fields, by name."""
        return asdict(self)


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(each) for each in value) if isinstance(value, list) else value
