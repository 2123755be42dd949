"""A GGUF file as a Checkpoint: Hugging Face's names, its order of rows, its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pygpukit.core.dtypes import DataType
from pygpukit.core.errors import InvalidSpecError, ModelFileError
from pygpukit.models.convert import convert
from pygpukit.models.dequantise import MXFP4, named
from pygpukit.models.gguf_config import config_of, ends
from pygpukit.models.gguf_names import known
from pygpukit.models.gguf_parts import open_gguf
from pygpukit.models.heads import halves
from pygpukit.models.quantised.blocks import of_gguf_mxfp4
from pygpukit.models.stored import Stored

if TYPE_CHECKING:
    from pygpukit.models.tokenizer.tokenizer import Tokenizer

    Array = np.ndarray[Any, Any]

_MAX_EXPERTS = 1024
_NO_NUMBER = 255  # of exponents
_ROPE_FACTORS = "rope_freqs.weight"
_LONGROPE = {"short_factor": "rope_factors_short.weight", "long_factor": "rope_factors_long.weight"}


class GGUFCheckpoint:
    """A Checkpoint of a GGUF file, or of all parts of a split one.

    Raises ModelFileError for an architecture or a tensor that is not known.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._gguf = open_gguf(path)
        self._tensors = self._gguf.tensors
        self._experts: dict[str, int] = {}  # the number in its tensor of what is of one expert
        try:
            self._stored = self._names()
            self.config = self._config()
        except BaseException:
            self._gguf.close()
            raise
        self.generation = {key: value for key, value in self.config.items() if key.endswith("_token_id")}
        several = ends(self._gguf.fields)
        if len(several) > 1:
            self.generation["eos_token_id"] = several
        self._tokenizer: Tokenizer | None = None

    def names(self) -> tuple[str, ...]:
        return tuple(self._stored)

    def shape(self, name: str) -> tuple[int, ...]:
        shape = self._tensors[self._stored[name]].shape
        if name in self._experts:
            return shape[1:]
        return shape[::-1] if self._gguf_names.is_transposed(name) else shape

    def dtype(self, name: str) -> DataType:
        return self._tensors[self._stored[name]].block.dtype

    def read(self, name: str, dtype: DataType | None = None) -> Array:
        values = self._gguf.read(self._stored[name])
        if name in self._experts:
            values = values[self._experts[name]]
        if self._gguf_names.is_transposed(name):
            values = values.T
        heads = self._gguf_names.heads_paired(name, self.config)
        if heads is not None:
            values = halves(values, heads)
        if self._gguf_names.norm_offset and name.endswith("norm.weight"):
            values = values - np.float32(self._gguf_names.norm_offset)
        have = self.dtype(name)
        return np.ascontiguousarray(convert(values, have, dtype or have))

    def stored(self, name: str) -> Stored | None:
        """A matrix as the file has it (see GGUFFile.stored). None for what is no matrix."""
        theirs = self._stored[name]
        tensor = self._tensors[theirs]
        shape = self.shape(name)
        if len(shape) != 2:
            return None
        heads = self._gguf_names.heads_paired(name, self.config)

        def rows() -> Array:
            stored = self._gguf.stored(theirs)
            if name in self._experts:
                stored = stored[self._experts[name]].reshape(shape[0], -1)
            if tensor.block.name == MXFP4:
                stored = self._repacked(stored, theirs)
            return stored if heads is None else halves(stored, heads)

        kind = "MXFP4" if tensor.block.name == MXFP4 else tensor.block.name
        return Stored(kind, rows, self._gguf_names.is_transposed(name))

    def _repacked(self, rows: Array, theirs: str) -> Array:
        """The blocks of folders with the values of GGUF's."""
        if np.any(rows.reshape(-1, named(MXFP4).bytes)[:, 0] == _NO_NUMBER):
            raise self._gguf.file.error(f"the tensor {theirs!r} has an exponent of MXFP4 that stands for no number")
        return of_gguf_mxfp4(rows)

    def quantised_weight(self, name: str) -> tuple[str, int] | None:
        tensor = self._tensors[self._stored[name]]
        return None if tensor.block.decode is None else (tensor.block.name, tensor.block.size(self.shape(name)))

    def tokenizer(self) -> Tokenizer:
        from pygpukit.models.tokenizer.gguf import from_fields

        if self._tokenizer is None:
            self._tokenizer = from_fields(self._gguf.fields, str(self._gguf.file.path))
        return self._tokenizer

    def close(self) -> None:
        self._gguf.close()

    def _names(self) -> dict[str, str]:
        architecture = self._gguf.fields.get("general.architecture")
        architectures = known()
        if not isinstance(architecture, str) or architecture not in architectures:
            raise self._gguf.file.error(
                f"its architecture is {architecture!r}; what is read is {', '.join(architectures)}"
            )
        names = architectures[architecture]
        count = self._gguf.fields.get(f"{architecture}.expert_count", 0)
        if names.mixture is not None and count:
            names = names.mixture
        self._architecture, self._gguf_names = architecture, names
        stored = {}
        for theirs in self._tensors:
            ours = self._gguf_names.tensor_name(theirs)
            if ours is not None:
                stored[ours] = theirs
            elif (
                not self._of_experts(theirs, count, stored)
                and theirs != _ROPE_FACTORS
                and not (self._gguf_names.longrope and theirs in _LONGROPE.values())
            ):
                mixture = f" whose {architecture}.expert_count is {count!r:.20}" if count else ""
                raise self._gguf.file.error(f"the tensor {theirs!r} is none of a {architecture} model{mixture}")
        return stored

    def _of_experts(self, theirs: str, count: Any, stored: dict[str, str]) -> bool:
        """True for a tensor of all experts, each of which gets its name. Raises ModelFileError for another count."""
        if not self._gguf_names.expert_names(theirs, 1):
            return False
        shape, axes = self._tensors[theirs].shape, 2 if theirs.endswith(".bias") else 3
        if type(count) is not int or not 0 < count <= _MAX_EXPERTS or len(shape) != axes or shape[0] != count:
            raise self._gguf.file.error(
                f"the tensor {theirs!r} has shape {shape}, must have {axes} axes, the first of {count!r:.20} experts "
                f"by {self._architecture}.expert_count, which are at most {_MAX_EXPERTS}"
            )
        for expert, ours in enumerate(self._gguf_names.expert_names(theirs, count)):
            stored[ours], self._experts[ours] = theirs, expert
        return True

    def _config(self) -> dict[str, Any]:
        shapes = {name: self.shape(name) for name in self._stored}
        try:
            config = config_of(
                self._architecture, self._gguf_names, self._gguf.fields, shapes, str(self._gguf.file.path)
            )
        except InvalidSpecError as error:
            raise ModelFileError(str(error), str(self._gguf.file.path)) from None
        for name, shape in shapes.items():
            heads = self._gguf_names.heads_paired(name, config)
            if heads is not None and shape[0] % (2 * heads):
                raise self._gguf.file.error(
                    f"the {shape[0]} rows of {self._stored[name]} are not those of {heads} heads"
                )
        if _ROPE_FACTORS in self._tensors:
            if config.get("rope_scaling") is not None:
                raise self._gguf.file.error(f"it has {_ROPE_FACTORS} and rope.scaling, which is not there yet together")
            config["rope_scaling"] = self._divided(config)
        if any(name in self._tensors for name in _LONGROPE.values()):
            config["rope_scaling"] = {**config["rope_scaling"], "rope_type": "longrope"} | self._long_factors()
        return config

    def _long_factors(self) -> dict[str, list[float]]:
        """Divisors of frequencies within the context of the training, and beyond."""
        missing = next((name for name in _LONGROPE.values() if name not in self._tensors), None)
        if missing is not None:
            raise self._gguf.file.error(f"it has the divisors of one context alone: {missing!r} is missing")
        return {ours: self._gguf.read(name).astype(float).ravel().tolist() for ours, name in _LONGROPE.items()}

    def _divided(self, config: dict[str, Any]) -> dict[str, Any]:
        """The scaling that the file keeps as divisors of frequencies: LLaMA 3's by its name, where they are that."""
        stored = self._gguf.read(_ROPE_FACTORS).astype(np.float64).ravel()
        pairs = np.arange(0, config["head_dim"], 2)
        if stored.shape != pairs.shape or not np.all(np.isfinite(stored) & (stored > 0)):
            raise self._gguf.file.error(f"{_ROPE_FACTORS} holds no divisors of {pairs.size} frequencies")
        factor, original = float(stored.max()), 8192
        waves = 2 * np.pi * config["rope_theta"] ** (pairs / config["head_dim"])
        smooth = np.clip((original / waves - 1.0) / 3.0, 0.0, 1.0)
        if not np.allclose(stored, 1 / ((1 - smooth) / factor + smooth), rtol=1e-3):
            return {"rope_type": "divided", "divisors": stored.tolist()}
        scaling = {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        return scaling | {"original_max_position_embeddings": original}
