"""Files of models and tokenizers, and tensors that are loaded when they are asked for."""

from pygpukit.compat.lazy_loading.loader import LazyModelLoader
from pygpukit.compat.lazy_loading.state import PoolStats, TensorState
from pygpukit.models.safetensors import Dtype, SafeTensorsFile, TensorInfo, load_safetensors
from pygpukit.models.tokenizer.tokenizer import Tokenizer

__all__ = [
    "Dtype",
    "LazyModelLoader",
    "PoolStats",
    "SafeTensorsFile",
    "TensorInfo",
    "TensorState",
    "Tokenizer",
    "load_safetensors",
]
