"""Functions of language models that are one call of something here: they are in pygpukit.llm."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models import GPT2_SPEC, LLAMA_SPEC, MIXTRAL_SPEC, QWEN3_SPEC, ModelSpec
from pygpukit.llm.weights import load
from pygpukit.nn.linear.layer import repack_linear
from pygpukit.nn.norm import Norm
from pygpukit.ops import copying

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.model import CausalTransformerModel


def load_model_from_safetensors(
    model_path: str | os.PathLike[str],
    dtype: str = "float32",
    spec: ModelSpec | None = None,
    repack_weights: bool = True,
) -> CausalTransformerModel:
    """load() of a folder or file. spec: the architecture, found by config.json or the tensors where it is left out.

    Without a config.json the sizes are those of the tensors' shapes; see load(). repack_weights: weights are always in
    memory of their own. Raises as load().
    """
    return load(model_path, dtype=dtype, spec=spec, progress=False)


def load_gpt2_from_safetensors(model_path: str | os.PathLike[str], dtype: str = "float32") -> CausalTransformerModel:
    """load_model_from_safetensors() of a GPT-2."""
    return load_model_from_safetensors(model_path, dtype, GPT2_SPEC)


def load_llama_from_safetensors(model_path: str | os.PathLike[str], dtype: str = "float32") -> CausalTransformerModel:
    """load_model_from_safetensors() of a LLaMA."""
    return load_model_from_safetensors(model_path, dtype, LLAMA_SPEC)


def load_qwen3_from_safetensors(model_path: str | os.PathLike[str], dtype: str = "float32") -> CausalTransformerModel:
    """load_model_from_safetensors() of a Qwen3."""
    return load_model_from_safetensors(model_path, dtype, QWEN3_SPEC)


def load_mixtral_from_safetensors(
    model_path: str | os.PathLike[str], dtype: str = "bfloat16"
) -> CausalTransformerModel:
    """load_model_from_safetensors() of a Mixtral."""
    return load_model_from_safetensors(model_path, dtype, MIXTRAL_SPEC)


def repack_weight(weight: GPUArray) -> GPUArray:
    """The same numbers in new, contiguous memory."""
    return copying.contiguous(weight).clone()


def repack_norm(norm: Norm) -> None:
    """The norm's weights in memory of their own. They always are; a view is copied."""
    norm.weight = copying.contiguous(norm.weight)
    norm.bias = None if norm.bias is None else copying.contiguous(norm.bias)


def repack_model_weights(model: CausalTransformerModel) -> None:
    """All weights of a model in memory of their own; a loaded model's always are."""
    for block in model.blocks:
        for linear in block.linears:
            repack_linear(linear)
        for norm in block.norms:
            repack_norm(norm)
    repack_norm(model.final_norm)


def sample_token(logits: Any, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> int:
    """A token of logits on the host or the device, (V,) or (1, V), by the seed of gp.set_sampling_seed().

    Errors as gp.sample_token().
    """
    from pygpukit._core import native
    from pygpukit.array.factory import from_numpy
    from pygpukit.ops.nn.sampling import sample_token_gpu

    if not isinstance(logits, native.ArrayBase):
        import numpy as np

        logits = from_numpy(np.asarray(logits, np.float32))
    return sample_token_gpu(logits, temperature, top_k, top_p)
