"""ModelSpec: what one architecture calls its tensors and which of the shared layers it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pygpukit.core.errors import InvalidSpecError
from pygpukit.llm.config import TransformerConfig


@dataclass(frozen=True)
class ModelSpec:
    """Names of an architecture's tensors, "{}" standing for the number of the layer, and its kinds of layers.

    None: it has no such tensor. A bias or norm that is named but not in the file is left out (Qwen2 without biases).
    """

    name: str
    embed_tokens: str
    position_embed: str | None
    lm_head: str | None
    final_norm: str
    final_norm_bias: str | None
    attn_norm: str
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
    mlp_norm: str
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


# config.json calls activations so; silu is gated in every architecture here, gelu is the tanh form.
_ACTIVATIONS = {"silu": "silu", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu", "gelu_fast": "gelu"}


def read_config(spec: ModelSpec, given: dict[str, Any]) -> TransformerConfig:
    """The configuration of a model from the fields of its config.json. Raises InvalidSpecError naming the field."""

    def need(*names: str) -> Any:
        for name in names:
            if given.get(name) is not None:
                return given[name]
        raise InvalidSpecError(f"config.json has no {names[0]!r}, which a {spec.name} model needs", names[0])

    activation = given.get("hidden_act") or given.get("activation_function") or spec.activation
    if _ACTIVATIONS.get(activation) != spec.activation:
        known = [name for name, kind in _ACTIVATIONS.items() if kind == spec.activation]
        raise InvalidSpecError(
            f"the activation {activation!r} of a {spec.name} model is not there yet; it can be {' or '.join(known)}",
            "hidden_act",
        )
    layers = need("num_hidden_layers", "n_layer")
    return TransformerConfig(
        vocab_size=need("vocab_size"),
        hidden_size=need("hidden_size", "n_embd"),
        num_layers=layers,
        num_heads=need("num_attention_heads", "n_head"),
        num_kv_heads=given.get("num_key_value_heads"),
        intermediate_size=given.get("intermediate_size") or given.get("n_inner"),
        _head_dim=given.get("head_dim"),
        norm_type=spec.norm_type,
        activation=spec.activation,
        use_rope=spec.use_rope,
        max_position_embeddings=need("max_position_embeddings", "n_positions"),
        norm_eps=given.get("rms_norm_eps") or given.get("layer_norm_epsilon") or spec.default_norm_eps,
        rope_theta=float(_rope(given).get("rope_theta") or given.get("rope_theta") or spec.default_rope_theta),
        tie_word_embeddings=bool(given.get("tie_word_embeddings", spec.lm_head is None)),
        rope_scaling=_scaling(given),
        sliding_window=_window(given, layers),
    )


def _rope(given: dict[str, Any]) -> dict[str, Any]:
    """The rope fields: "rope_parameters" of newer files, "rope_scaling" of older ones."""
    found = given.get("rope_parameters") or given.get("rope_scaling") or {}
    if not isinstance(found, dict):
        raise InvalidSpecError(f"config.json has rope parameters of {found!r}, must be an object", "rope_parameters")
    return found


def _scaling(given: dict[str, Any]) -> dict[str, Any] | None:
    fields = dict(_rope(given))
    fields["rope_type"] = fields.get("rope_type") or fields.get("type") or "default"
    fields.setdefault("original_max_position_embeddings", given.get("max_position_embeddings"))
    return None if fields["rope_type"] == "default" else fields


def _window(given: dict[str, Any], layers: int) -> int | None:
    """The sliding window, if all layers have it."""
    window = given.get("sliding_window")
    kinds = given.get("layer_types")
    if window is None or given.get("use_sliding_window") is False:
        return None
    if kinds is None and given.get("use_sliding_window"):
        kinds = ["full_attention"] * min(given.get("max_window_layers", 0), layers)
        kinds += ["sliding_attention"] * (layers - len(kinds))
    kinds = set(kinds or ["sliding_attention"])
    if kinds == {"full_attention"}:
        return None
    if kinds != {"sliding_attention"}:
        raise InvalidSpecError(
            f"layers of the kinds {', '.join(sorted(kinds))} in one model are not there yet; all must be alike",
            "layer_types",
        )
    return int(window)
