"""A Whisper model in CTranslate2's layout, under Hugging Face's names: model.bin, config.json, tokenizer.json."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.core.dtypes import DataType, float32, int8
from pygpukit.core.errors import ModelFileError
from pygpukit.models.convert import convert
from pygpukit.models.ctranslate2 import ModelBin
from pygpukit.models.documents import read_object

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.models.tokenizer.tokenizer import Tokenizer

    Array = np.ndarray[Any, Any]

# A layer's variables there, and the tensors that each holds, one below the other.
_SELF = {
    "self_attention/layer_norm/": ("self_attn_layer_norm.",),
    "self_attention/linear_0/": ("self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."),
    "self_attention/linear_1/": ("self_attn.out_proj.",),
    "ffn/layer_norm/": ("final_layer_norm.",),
    "ffn/linear_0/": ("fc1.",),
    "ffn/linear_1/": ("fc2.",),
}
_CROSS = {
    "attention/layer_norm/": ("encoder_attn_layer_norm.",),
    "attention/linear_0/": ("encoder_attn.q_proj.",),
    "attention/linear_1/": ("encoder_attn.k_proj.", "encoder_attn.v_proj."),
    "attention/linear_2/": ("encoder_attn.out_proj.",),
}
_OTHERS = {
    "encoder/conv1/": "encoder.conv1.",
    "encoder/conv2/": "encoder.conv2.",
    "encoder/position_encodings/encodings": "encoder.embed_positions.weight",
    "encoder/layer_norm/": "encoder.layer_norm.",
    "decoder/embeddings/weight": "decoder.embed_tokens.weight",
    "decoder/position_encodings/encodings": "decoder.embed_positions.weight",
    "decoder/layer_norm/": "decoder.layer_norm.",
}
_LEAVES = {"gamma": "weight", "beta": "bias", "weight": "weight", "bias": "bias"}
_ERF = 3  # of the file's numbers of activations


class CTranslate2Checkpoint:
    """A Checkpoint of such a folder. Weights of 8 bits are scaled as they are read."""

    def __init__(self, path: Path, name: str) -> None:
        self.name, self.folder = name, path
        self._file = ModelBin(path / "model.bin")
        if self._file.spec != "WhisperSpec":
            raise self._error(f"it holds a {self._file.spec}, read are WhisperSpec only")
        # Each tensor: a variable, and which of how many equal parts of its rows.
        self._tensors: dict[str, tuple[str, int, int]] = {}
        for variable in self._file.variables:
            self._place(variable)
        config = read_object(path / "config.json") if (path / "config.json").is_file() else {}
        self.config = self._config()
        self.generation = {
            "alignment_heads": config.get("alignment_heads"),
            "suppress_tokens": config.get("suppress_ids"),
            "begin_suppress_tokens": config.get("suppress_ids_begin"),
        }
        self._tokenizer: Tokenizer | None = None

    def names(self) -> tuple[str, ...]:
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        variable, _, parts = self._tensors[name]
        shape = self._file.variables[variable].shape
        return (shape[0] // parts, *shape[1:])

    def dtype(self, name: str) -> DataType:
        dtype = self._file.variables[self._tensors[name][0]].dtype
        return float32 if dtype == int8 else dtype

    def read(self, name: str, dtype: DataType | None = None) -> Array:
        variable, part, parts = self._tensors[name]
        have, values = self._file.variables[variable].dtype, self._file.array(variable)
        rows = values.shape[0] // parts
        mine = slice(part * rows, (part + 1) * rows)
        values = values[mine]
        if have == int8:
            scales = self._scales(variable)
            values, have = values.astype("float32") / scales[mine].reshape(-1, *[1] * (values.ndim - 1)), float32
        return convert(values, have, dtype or have)

    def stored(self, name: str) -> None:
        return None  # what reads Whisper wants values

    def quantised_weight(self, name: str) -> None:
        return None

    def tokenizer(self) -> Tokenizer:
        from pygpukit.models.tokenizer.tokenizer import Tokenizer

        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self.folder)
        return self._tokenizer

    def close(self) -> None:
        self._file.close()

    def _error(self, problem: str) -> ModelFileError:
        return ModelFileError(f"{self._file.path}: {problem}", str(self._file.path))

    def _place(self, variable: str) -> None:
        names = _names(variable)
        stored = self._file.variables[variable]
        if names and (not stored.shape or stored.shape[0] % len(names)):
            raise self._error(
                f"{variable!r} has shape {stored.shape}, its first extent must be a multiple of {len(names)}"
            )
        if names and stored.dtype == int8:
            self._scales(variable)
        for part, name in enumerate(names):
            self._tensors[name] = variable, part, len(names)

    def _scales(self, variable: str) -> Array:
        scales = self._file.variables.get(f"{variable}_scale")
        rows = self._file.variables[variable].shape[0]
        if scales is None or scales.shape != (rows,) or scales.dtype != float32:
            raise self._error(f"{variable!r} is int8 and needs {variable}_scale, float32 of shape ({rows},)")
        return self._file.array(f"{variable}_scale")

    def _config(self) -> dict[str, Any]:
        """The fields of Hugging Face's config.json, from the shapes."""

        def extent(name: str, axis: int) -> int:
            if name not in self._tensors or len(self.shape(name)) <= axis:
                raise self._error(f"it has no {name!r} with {axis + 1} dimensions, a Whisper model needs it")
            return self.shape(name)[axis]

        def layers(stack: str) -> int:
            return len({m[1] for m in (re.match(rf"model\.{stack}\.layers\.(\d+)\.", n) for n in self._tensors) if m})

        if self._file.scalar("decoder/activation", _ERF) != _ERF:
            raise self._error(f"its activation is number {self._file.scalar('decoder/activation', _ERF)}, read is GELU")
        width = extent("model.decoder.embed_tokens.weight", 1)
        return {
            "model_type": "whisper",
            "d_model": width,
            "encoder_layers": layers("encoder"),
            "decoder_layers": layers("decoder"),
            "encoder_attention_heads": self._file.scalar("encoder/num_heads", width // 64),
            "decoder_attention_heads": self._file.scalar("decoder/num_heads", width // 64),
            "encoder_ffn_dim": extent("model.encoder.layers.0.fc1.weight", 0),
            "decoder_ffn_dim": extent("model.decoder.layers.0.fc1.weight", 0),
            "vocab_size": extent("model.decoder.embed_tokens.weight", 0),
            "num_mel_bins": extent("model.encoder.conv1.weight", 1),
            "max_source_positions": extent("model.encoder.embed_positions.weight", 0),
            "max_target_positions": extent("model.decoder.embed_positions.weight", 0),
        }


def _names(variable: str) -> list[str]:
    """The tensors that a variable holds; none for scales and settings."""
    for begin, name in _OTHERS.items():
        if variable == begin:
            return [f"model.{name}"]
        if begin.endswith("/") and variable.startswith(begin) and variable[len(begin) :] in _LEAVES:
            return [f"model.{name}{_LEAVES[variable[len(begin) :]]}"]
    match = re.fullmatch(r"(encoder|decoder)/layer_(\d+)/(.+/)(\w+)", variable)
    if match is None or match[4] not in _LEAVES:
        return []
    parts = (_SELF if match[1] == "encoder" else {**_SELF, **_CROSS}).get(match[3], ())
    return [f"model.{match[1]}.layers.{int(match[2])}.{part}{_LEAVES[match[4]]}" for part in parts]
