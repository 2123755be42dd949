"""The small random models of tiny_weights.py, loaded from memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from llm.tiny_weights import CONFIGS as CONFIGS
from llm.tiny_weights import tensors

from pygpukit.core.dtypes import DataType, as_dtype
from pygpukit.core.errors import ModelFileError
from pygpukit.llm.model import CausalTransformerModel
from pygpukit.llm.weights import from_checkpoint


class MemoryCheckpoint:
    """A checkpoint whose tensors are arrays."""

    def __init__(self, config: dict[str, Any], tensors: dict[str, np.ndarray], name: str = "tiny") -> None:
        self.config, self.generation, self.name, self._tensors = config, {}, name, tensors

    def names(self) -> tuple[str, ...]:
        return tuple(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name].shape

    def dtype(self, name: str) -> DataType:
        return as_dtype("float32")

    def read(self, name: str, dtype: DataType | None = None) -> np.ndarray:
        from pygpukit.models.convert import convert

        return convert(self._tensors[name], as_dtype("float32"), dtype or as_dtype("float32"))

    def stored(self, name: str) -> None:
        return None

    def quantised_weight(self, name: str) -> None:
        return None

    def tokenizer(self) -> Any:
        raise ModelFileError("no tokenizer", "memory")

    def close(self) -> None:
        pass


def model(name: str, seed: int = 0, dtype: str = "float32", **changes: Any) -> CausalTransformerModel:
    """A small model. changes: fields of its configuration, or context, slots, kv_memory, kv_dtype, weights_memory."""
    load = {
        key: changes.pop(key)
        for key in ("context", "slots", "kv_memory", "kv_dtype", "weights_memory")
        if key in changes
    }
    config = {**CONFIGS[name], **changes}
    return from_checkpoint(MemoryCheckpoint(config, tensors(config, seed)), dtype=dtype, **load)
