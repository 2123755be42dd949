"""Files of models and tokenizers."""

from __future__ import annotations

from typing import Any

from pygpukit.models.safetensors import Dtype, SafeTensorsFile, TensorInfo, load_safetensors
from pygpukit.models.tokenizer.tokenizer import Tokenizer

__all__ = ["Dtype", "SafeTensorsFile", "TensorInfo", "Tokenizer", "load_safetensors"]

_LATER = ("LazyModelLoader", "PoolStats", "TensorState")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        raise AttributeError(
            f"_pygpukit_rust.llm.{name} is not there yet: models are loaded whole, by pygpukit.llm.load"
        )
    raise AttributeError(f"_pygpukit_rust.llm has no {name!r}; it has {', '.join(__all__)}")
