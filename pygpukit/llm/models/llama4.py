"""Llama 4 (text): of four layers three rotate and see their own chunk of a sequence, the fourth all of it unrotated;
mixtures of experts whose rows are weighed by a sigmoid, beside an expert that all rows share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import LLAMA, WEIGHTS, attention, mlp
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.mlp import MLP
from pygpukit.nn.moe.experts import Gate
from pygpukit.nn.moe.layer import MoELayer
from pygpukit.nn.moe.routing import Routing

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields

_INTERVAL = 4  # every so many layers one does not rotate
_CHUNK, _GROWTH, _FLOOR = 8192, 0.1, 8192.0
_BIASES = ("gate_bias", "up_bias", "down_bias")


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    config = layer.config
    # A rotation changes no length: norms without weights are the same before it, where they are computed here.
    has_norms = config.plain_head_norms and config.rotates(layer.number)
    q_norm, k_norm = (layer.plain_head_norm(role) if has_norms else None for role in ("q_norm", "k_norm"))
    feed_forward = mixture(layer) if config.is_sparse(layer.number) else mlp(layer)
    heads = attention(layer, q_norm, k_norm)
    return TransformerBlock(layer.norm("attn_norm"), heads, layer.norm("mlp_norm"), feed_forward)


def mixture(layer: LayerWeights) -> MoELayer:
    """A router, its experts and the one that all rows share."""
    gate_up = layer.linear("shared_gate_up", "shared_gate_proj", "shared_up_proj")
    down = layer.linear("shared_down", "shared_down_proj")
    shared = MLP(replace(layer.config, intermediate_size=layer.config.expert_size), gate_proj=gate_up, down_proj=down)
    return MoELayer(layer.config, layer.router(), layer.stacked_experts(Gate(), transposed=True), shared)


def _config(fields: Fields) -> dict[str, Any]:
    layers = fields.integer("num_hidden_layers") or 1
    rotated = _rotated(fields, layers)
    kinds = fields.get("layer_types")
    tuned = fields.get("attn_temperature_tuning")
    if type(tuned) not in (bool, int):
        raise fields.error("must be true or false", "attn_temperature_tuning")
    return {
        "intermediate_size": fields.integer("intermediate_size_mlp"),
        "moe_intermediate_size": fields.integer("intermediate_size"),
        "num_experts": fields.integer("num_local_experts"),
        "num_experts_per_tok": fields.integer("num_experts_per_tok"),
        "routing": Routing("sigmoid", weighs_rows=True),
        "sparse": _sparse(fields, layers),
        "rotated": rotated,
        "attention_chunk": fields.integer("attention_chunk_size"),
        "chunked": rotated if kinds is None else tuple(kind == "chunked_attention" for kind in kinds),
        "plain_head_norms": fields.flag("use_qk_norm") is True,
        "query_growth": (fields.number("attn_scale") or _GROWTH) if tuned else 0.0,
        "query_floor": fields.number("floor_scale") or _FLOOR,
    }


def _rotated(fields: Fields, layers: int) -> tuple[bool, ...]:
    """True for each layer that rotates its heads."""
    interval = fields.integer("no_rope_layer_interval") or _INTERVAL
    flags = fields.get("no_rope_layers") or [int((number + 1) % interval != 0) for number in range(layers)]
    if not isinstance(flags, list) or len(flags) != layers or any(flag not in (0, 1) for flag in flags):
        raise fields.error(f"must be a list of 0 or 1, which rotates, for each of {layers} layers", "no_rope_layers")
    return tuple(flag == 1 for flag in flags)


def _sparse(fields: Fields, layers: int) -> tuple[bool, ...]:
    """True for each layer that has a mixture."""
    step = fields.integer("interleave_moe_layer_step") or 1
    numbers = fields.get("moe_layers")
    if numbers is None:
        numbers = list(range(step - 1, layers, step))
    if not isinstance(numbers, list) or any(type(number) is not int for number in numbers):
        raise fields.error("must be a list of numbers of layers", "moe_layers")
    return tuple(number in numbers for number in range(layers))


_READ = {
    "num_local_experts",
    "num_experts_per_tok",
    "intermediate_size_mlp",
    "moe_layers",
    "interleave_moe_layer_step",
} | {
    "no_rope_layers",
    "no_rope_layer_interval",
    "attention_chunk_size",
    "use_qk_norm",
    "attn_temperature_tuning",
    "attn_scale",
    "floor_scale",
}
LLAMA4 = replace(
    LLAMA,
    name="llama4_text",
    weights={
        **{role: name.replace(".mlp.", ".feed_forward.") for role, name in WEIGHTS.items() if role not in _BIASES},
        "moe_gate": "model.layers.{}.feed_forward.router.weight",
        "experts_gate_up": "model.layers.{}.feed_forward.experts.gate_up_proj",
        "experts_down": "model.layers.{}.feed_forward.experts.down_proj",
        "shared_gate_proj": "model.layers.{}.feed_forward.shared_expert.gate_proj.weight",
        "shared_up_proj": "model.layers.{}.feed_forward.shared_expert.up_proj.weight",
        "shared_down_proj": "model.layers.{}.feed_forward.shared_expert.down_proj.weight",
    },
    block=block,
    fields=replace(
        LLAMA_FIELDS,
        read=LLAMA_FIELDS.read - {"mlp_bias", "sliding_window"} | _READ,
        neutral={name: values for name, values in LLAMA_FIELDS.neutral.items() if name not in _READ}
        | {"mlp_bias": (False,), "sliding_window": ()},
        # Of training, and what no class of the reference reads.
        harmless=LLAMA_FIELDS.harmless
        | {"output_router_logits", "router_aux_loss_coef", "router_jitter_noise", "for_llm_compressor"},
        defaults={**LLAMA_FIELDS.defaults, "rms_norm_eps": 1e-5, "head_dim": 128, "num_key_value_heads": 8}
        | {"intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_local_experts": 16, "num_experts_per_tok": 1}
        | {"attention_chunk_size": _CHUNK, "use_qk_norm": True, "attn_temperature_tuning": True}
        | {"max_position_embeddings": 131072},
    ),
    config=_config,
    rope_theta=500000.0,
    norm_eps=1e-5,
    recognised_by=("embed_tokens", "q_proj", "moe_gate", "shared_gate_proj"),
    paired_heads=True,
    gguf={},
)
