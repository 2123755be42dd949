"""The text of a model that reads pictures or sounds, too: its configuration and tensors as a model of text has them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygpukit.core.backend import frames_inside_package
from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import ModelFileError

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.models.checkpoint import Checkpoint
    from pygpukit.models.stored import Stored
    from pygpukit.models.tokenizer.tokenizer import Tokenizer

_NESTED = ("text_config", "llm_config")  # where files keep the text's configuration
# Older files have the fields of text and pictures side by side.
_FLAT = ("qwen2_vl", "qwen2_5_vl")
# These differ from the models of text by where pictures stand in their rotation, which of texts is the ordinary one.
_AS_TEXT = {
    **dict.fromkeys(("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), "qwen2"),
    "qwen3_vl": "qwen3",
    "qwen3_vl_text": "qwen3",
}
# Fields of the whole that hold for its text where that does not have them.
_SHARED = (
    "tie_word_embeddings", "quantization_config", "torch_dtype", "dtype", "bos_token_id", "eos_token_id",
    "pad_token_id",
)  # fmt: skip
_OTHERS = ("vision_", "image_", "video_", "audio_")  # how fields of what is no text begin
# Nested configurations leave out what has the default of transformers' classes.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "gemma3_text": {"vocab_size": 262208},
    "llama": {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
    },
    "mistral": {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
        "sliding_window": 4096,
    },
    "qwen2": {
        "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
    },
}  # fmt: skip
# How names of the text's tensors begin, and how they do in a model of text.
_TEXT = (
    ("language_model.model.", "model."),
    ("language_model.lm_head.", "lm_head."),
    ("model.language_model.", "model."),
    ("model.text_model.", "model."),
)
_TOWERS = (
    "audio_tower", "connector", "embed_audio", "embed_vision", "mlp1", "multi_modal_projector", "vision_model",
    "vision_tower", "visual",
)  # fmt: skip


class TextPart:
    """The Checkpoint of the text that a checkpoint of more has. A warning says what is left out."""

    def __init__(self, whole: Checkpoint) -> None:
        self._whole = whole
        self.name, self.generation, self.config = whole.name, whole.generation, _config(whole.config)
        self._names: dict[str, str] = {}
        left_out: dict[str, int] = {}
        for name in whole.names():
            tower = name.removeprefix("model.").partition(".")[0]
            if tower in _TOWERS:
                left_out[tower] = left_out.get(tower, 0) + 1
                continue
            own = _own_name(name)
            if own in self._names:
                raise ModelFileError(f"{whole.name}: {self._names[own]!r} and {name!r} are both the text's {own}", name)
            self._names[own] = name
        count, towers = sum(left_out.values()), ", ".join(sorted(left_out))
        warnings.warn(
            f"{whole.name}: the text of a {whole.config.get('model_type')} model is loaded, which takes no pictures "
            f"and no sounds; left out: {count} tensors{f' of {towers}' if towers else ''}",
            stacklevel=frames_inside_package(),
        )

    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._whole.shape(self._names[name])

    def dtype(self, name: str) -> DataType:
        return self._whole.dtype(self._names[name])

    def read(self, name: str, dtype: DataType | None = None) -> np.ndarray[Any, Any]:
        return self._whole.read(self._names[name], dtype)

    def stored(self, name: str) -> Stored | None:
        return self._whole.stored(self._names[name])

    def quantised_weight(self, name: str) -> tuple[str, int] | None:
        return self._whole.quantised_weight(self._names[name])

    def tokenizer(self) -> Tokenizer:
        return self._whole.tokenizer()

    def close(self) -> None:
        self._whole.close()


def has_text_part(config: Mapping[str, Any]) -> bool:
    """True if a config.json is of a model that has a text beside pictures or sounds."""
    return config.get("model_type") in _FLAT or _nested(config) is not None


def _nested(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((config[name] for name in _NESTED if isinstance(config.get(name), Mapping)), None)


def _config(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The text's config.json."""
    nested = _nested(whole)
    if nested is None:
        config = {name: value for name, value in whole.items() if not name.startswith(_OTHERS)}
    else:
        config = {name: whole[name] for name in _SHARED if whole.get(name) is not None}
        config |= {name: value for name, value in nested.items() if value is not None or name not in config}
    kind = config.get("model_type")
    if isinstance(kind, str):
        config["model_type"] = kind = _AS_TEXT.get(kind, kind)
        config = _DEFAULTS.get(kind, {}) | config
    for name in ("rope_scaling", "rope_parameters"):
        if isinstance(config.get(name), Mapping):
            config[name] = _rotation_of_text(config[name])
    return config


def _rotation_of_text(stored: Mapping[str, Any]) -> dict[str, Any] | None:
    """Without the parts of a head that turn by a picture's place: by that in the text, all turn alike."""
    kept = {name: value for name, value in stored.items() if name not in ("mrope_section", "mrope_interleaved")}
    kept = {name: "default" if value == "mrope" else value for name, value in kept.items()}
    return None if set(kept) <= {"type", "rope_type"} and set(kept.values()) <= {"default"} else kept


def _own_name(name: str) -> str:
    for begin, own in _TEXT:
        if name.startswith(begin):
            return own + name.removeprefix(begin)
    return name
