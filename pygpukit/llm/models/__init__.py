"""Architectures: one readable description each, over the shared layers, and finding the one that a file holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.models.gpt2 import GPT2_SPEC
from pygpukit.llm.models.llama import LLAMA_SPEC
from pygpukit.llm.models.mistral import MISTRAL_SPEC
from pygpukit.llm.models.qwen2 import QWEN2_SPEC
from pygpukit.llm.models.qwen3 import QWEN3_SPEC
from pygpukit.llm.models.reading import biases, read_config
from pygpukit.llm.models.spec import ModelSpec
from pygpukit.llm.models.tensors import check_tensors, prefix_of

MODEL_SPECS = {spec.name: spec for spec in (GPT2_SPEC, LLAMA_SPEC, QWEN2_SPEC, QWEN3_SPEC, MISTRAL_SPEC)}

__all__ = [
    "GPT2_SPEC",
    "LLAMA_SPEC",
    "MISTRAL_SPEC",
    "MODEL_SPECS",
    "QWEN2_SPEC",
    "QWEN3_SPEC",
    "ModelSpec",
    "biases",
    "check_tensors",
    "detect_model_spec",
    "prefix_of",
    "read_config",
    "spec_of",
]


def detect_model_spec(tensor_names: Iterable[str]) -> ModelSpec:
    """The architecture whose tensors these are. Raises InvalidSpecError when none is known, or it has experts.

    Mistral and LLaMA have the same tensors; config.json tells them apart, see spec_of().
    """
    names = {name.removeprefix("transformer.") for name in tensor_names}
    if any(".experts." in name or ".block_sparse_moe." in name for name in names):
        raise InvalidSpecError("these are the tensors of a mixture of experts, which is not there yet", "spec")
    if GPT2_SPEC.embed_tokens in names and GPT2_SPEC.q_proj.format(0) in names:
        return GPT2_SPEC
    if LLAMA_SPEC.embed_tokens in names and LLAMA_SPEC.q_proj.format(0) in names:
        if str(QWEN3_SPEC.q_norm).format(0) in names:
            return QWEN3_SPEC
        return QWEN2_SPEC if str(QWEN2_SPEC.q_bias).format(0) in names else LLAMA_SPEC
    some = ", ".join(sorted(names)[:3]) or "none"
    raise InvalidSpecError(
        f"no known architecture has these tensors (the first are {some}); known are {', '.join(MODEL_SPECS)}", "spec"
    )


def spec_of(model_type: Any, tensor_names: Iterable[str]) -> ModelSpec:
    """The architecture by the "model_type" of config.json, where there is one, else by the names of the tensors."""
    if model_type is None:
        return detect_model_spec(tensor_names)
    for spec in MODEL_SPECS.values():
        if spec.hf_model_type == model_type:
            return spec
    raise InvalidSpecError(
        f"models of the type {model_type!r} are not there yet; known are "
        f"{', '.join(spec.hf_model_type for spec in MODEL_SPECS.values())}",
        "model_type",
    )
