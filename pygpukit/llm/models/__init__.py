"""Architectures: one readable file each, and finding the one that a file holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.encoders.kinds import KINDS, EncoderError
from pygpukit.llm.models.architecture import Architecture
from pygpukit.llm.models.gemma2 import GEMMA2
from pygpukit.llm.models.gemma3 import GEMMA3
from pygpukit.llm.models.gpt2 import GPT2
from pygpukit.llm.models.gpt_oss import GPT_OSS
from pygpukit.llm.models.granite import GRANITE
from pygpukit.llm.models.llama import LLAMA
from pygpukit.llm.models.llama4 import LLAMA4
from pygpukit.llm.models.mamba2 import MAMBA2
from pygpukit.llm.models.mistral import MISTRAL
from pygpukit.llm.models.mixtral import MIXTRAL
from pygpukit.llm.models.olmo2 import OLMO2
from pygpukit.llm.models.olmoe import OLMOE
from pygpukit.llm.models.phi3 import PHI3
from pygpukit.llm.models.qwen2 import QWEN2
from pygpukit.llm.models.qwen3 import QWEN3
from pygpukit.llm.models.qwen3_moe import QWEN3_MOE
from pygpukit.llm.models.reading import biases, read_config
from pygpukit.llm.models.smollm3 import SMOLLM3
from pygpukit.llm.models.spec import ModelSpec, spec_from, with_names
from pygpukit.llm.models.tensors import check_tensors, prefix_of
from pygpukit.plugins.entries import plugin

_ALL = (
    LLAMA,
    MISTRAL,
    QWEN3,
    QWEN2,
    GPT2,
    PHI3,
    GEMMA2,
    GEMMA3,
    SMOLLM3,
    OLMO2,
    GRANITE,
    MIXTRAL,
    QWEN3_MOE,
    OLMOE,
    GPT_OSS,
    LLAMA4,
    MAMBA2,
)
ARCHITECTURES = {architecture.name: architecture for architecture in _ALL}
GGUF_NAMES = {name: names for architecture in _ALL for name, names in architecture.gguf.items()}
MODEL_SPECS = {one.name: spec for one in _ALL if (spec := spec_from(one)) is not None}
GPT2_SPEC, LLAMA_SPEC, MISTRAL_SPEC = MODEL_SPECS["gpt2"], MODEL_SPECS["llama"], MODEL_SPECS["mistral"]
QWEN2_SPEC, QWEN3_SPEC = MODEL_SPECS["qwen2"], MODEL_SPECS["qwen3"]
MIXTRAL_SPEC, QWEN3_MOE_SPEC = MODEL_SPECS["mixtral"], MODEL_SPECS["qwen3_moe"]

__all__ = [
    "ARCHITECTURES",
    "GGUF_NAMES",
    "GPT2_SPEC",
    "LLAMA_SPEC",
    "MISTRAL_SPEC",
    "MIXTRAL_SPEC",
    "MODEL_SPECS",
    "QWEN2_SPEC",
    "QWEN3_MOE_SPEC",
    "QWEN3_SPEC",
    "Architecture",
    "ModelSpec",
    "architecture_of",
    "biases",
    "check_tensors",
    "detect_model_spec",
    "is_known",
    "prefix_of",
    "read_config",
]


def detect_model_spec(tensor_names: Iterable[str]) -> ModelSpec:
    """The architecture whose tensors these are. Raises InvalidSpecError when none is known.

    Mistral and LLaMA have the same tensors; config.json tells them apart.
    """
    return MODEL_SPECS[_recognised_by(tensor_names).name]


def architecture_of(model_type: Any, tensor_names: Iterable[str], spec: ModelSpec | None = None) -> Architecture:
    """The architecture by its record, else by the "model_type" of config.json, else by the names of the tensors."""
    if spec is not None:
        plain, normed = (MIXTRAL, QWEN3_MOE) if spec.is_moe else (LLAMA, QWEN3)
        base = GPT2 if spec.qkv_combined else plain if spec.q_norm is None else normed
        return ARCHITECTURES[spec.name] if spec == MODEL_SPECS.get(spec.name) else with_names(base, spec)
    if model_type is None:
        return _recognised_by(tensor_names)
    if model_type in KINDS:
        raise EncoderError(model_type)
    if isinstance(model_type, str) and model_type not in ARCHITECTURES and (known := _of_plugin(model_type)):
        return known
    if not isinstance(model_type, str) or model_type not in ARCHITECTURES:
        raise InvalidSpecError(
            f"models of the type {model_type!r} are not there yet; known are {', '.join(ARCHITECTURES)}", "model_type"
        )
    return ARCHITECTURES[model_type]


def is_known(model_type: Any) -> bool:
    """True if there is an architecture of that name, here or in a plugin. Raises PluginError."""
    return isinstance(model_type, str) and (model_type in ARCHITECTURES or _of_plugin(model_type) is not None)


def _of_plugin(model_type: str) -> Architecture | None:
    """The architecture that a plugin brings for a "model_type", None where none does. Raises PluginError."""
    one = plugin("pygpukit.models", model_type)
    if one is None:
        return None
    value = one.load()
    if not isinstance(value, Architecture) or value.name != model_type:
        raise one.error(f"{one.value} is {value!r:.80}; it must be an Architecture whose name is {model_type!r}")
    return value


def _recognised_by(tensor_names: Iterable[str]) -> Architecture:
    """Of the architectures whose telling tensors are all there, the one with the most of them."""
    names = {name.removeprefix("transformer.") for name in tensor_names}
    has_experts = any(".experts." in name for name in names)

    def matches(architecture: Architecture) -> bool:
        tensors = [architecture.weights[role].format(0) for role in architecture.recognised_by]
        return bool(tensors) and names.issuperset(tensors) and has_experts <= ("moe_gate" in architecture.weights)

    possible = [architecture for architecture in _ALL if matches(architecture)]
    if possible:
        return max(possible, key=lambda architecture: len(architecture.recognised_by))
    if has_experts:
        raise InvalidSpecError("these are the tensors of a mixture of experts of a kind that is not there yet", "spec")
    some = ", ".join(sorted(names)[:3]) or "none"
    raise InvalidSpecError(
        f"no known architecture has these tensors (the first are {some}); known are {', '.join(MODEL_SPECS)}", "spec"
    )
