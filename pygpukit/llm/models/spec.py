"""ModelSpec: the documented record of an architecture's tensors, made of an Architecture, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pygpukit.llm.models.architecture import Architecture


@dataclass(frozen=True)
class ModelSpec:
    """Names of an architecture's tensors, "{}" standing for the number of the layer, and its kinds of layers.

    None: it has no such tensor. A bias that is named but not in the file is left out (Qwen2 without biases).
    paired_heads: rows of q and k are ordered for rope on neighbouring pairs.
    """

    name: str
    embed_tokens: str
    position_embed: str | None
    lm_head: str | None
    final_norm: str
    final_norm_bias: str | None
    attn_norm: str | None
    attn_norm_bias: str | None
    q_proj: str
    k_proj: str
    v_proj: str
    o_proj: str
    q_bias: str | None
    k_bias: str | None
    v_bias: str | None
    o_bias: str | None
    q_norm: str | None
    k_norm: str | None
    mlp_norm: str | None
    mlp_norm_bias: str | None
    fc1: str | None
    fc1_bias: str | None
    fc2: str | None
    fc2_bias: str | None
    gate_proj: str | None
    up_proj: str | None
    down_proj: str | None
    moe_gate: str | None = None
    expert_gate_proj: str | None = None
    expert_up_proj: str | None = None
    expert_down_proj: str | None = None
    norm_type: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    activation: Literal["gelu", "silu"] = "silu"
    use_rope: bool = True
    use_qk_norm: bool = False
    use_position_embed: bool = False
    qkv_combined: bool = False
    weight_transpose: bool = False
    is_moe: bool = False
    default_norm_eps: float = 1e-5
    default_rope_theta: float = 10000.0
    hf_model_type: str = ""
    gate_bias: str | None = None
    up_bias: str | None = None
    down_bias: str | None = None
    paired_heads: bool = False


_NO_TENSORS = {"name", "hf_model_type", "norm_type", "activation"}


def spec_from(architecture: Architecture) -> ModelSpec | None:
    """The record of an architecture; None for one without attention, which has no tensors of these names."""
    weights = architecture.weights
    if "o_proj" not in weights:
        return None
    names = {role: weights.get(role) for role in ModelSpec.__dataclass_fields__ if role in weights}
    for kind in ("proj", "bias"):  # one tensor of all three stands in the place of each
        if f"qkv_{kind}" in weights:
            names |= {f"{part}_{kind}": weights[f"qkv_{kind}"] for part in "qkv"}
    for part in ("gate", "up"):
        names.setdefault(f"{part}_proj", weights.get("gate_up_proj"))
    required = {
        name: None for name, spec_field in ModelSpec.__dataclass_fields__.items() if spec_field.type == "str | None"
    }
    return ModelSpec(
        **{**required, **names},  # type: ignore[arg-type]
        name=architecture.name,
        hf_model_type=architecture.name,
        norm_type=architecture.norm_type,
        activation="silu" if architecture.activation == "silu" else "gelu",
        use_rope=architecture.use_rope,
        use_qk_norm="q_norm" in weights,
        use_position_embed="position_embed" in weights,
        qkv_combined="qkv_proj" in weights,
        is_moe="moe_gate" in weights,
        weight_transpose=architecture.transposed,
        paired_heads=architecture.paired_heads,
        default_norm_eps=architecture.norm_eps,
        default_rope_theta=architecture.rope_theta,
    )


def with_names(base: Architecture, spec: ModelSpec) -> Architecture:
    """An architecture whose tensors have the names of a record."""
    weights = {role: name for role, name in vars(spec).items() if isinstance(name, str) and role not in _NO_TENSORS}
    if spec.qkv_combined:
        weights = _joint(weights)
    return replace(
        base,
        name=spec.name,
        weights=weights,
        norm_type=spec.norm_type,
        norm_eps=spec.default_norm_eps,
        rope_theta=spec.default_rope_theta,
        use_rope=spec.use_rope,
        transposed=spec.weight_transpose,
    )


def _joint(weights: Mapping[str, str]) -> dict[str, str]:
    """q's names as those of the joint tensor."""
    apart = {f"{part}_{kind}" for part in "qkv" for kind in ("proj", "bias")}
    joint = {f"qkv_{kind}": weights[f"q_{kind}"] for kind in ("proj", "bias") if f"q_{kind}" in weights}
    return {role: name for role, name in weights.items() if role not in apart} | joint
