"""gpt-oss: sinks in attention, a window in every other layer, and experts with biases and a clamped SwiGLU."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import LLAMA, attention
from pygpukit.llm.models.mixtral import MIXTRAL
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.moe.experts import Gate
from pygpukit.nn.moe.layer import MoELayer
from pygpukit.nn.moe.routing import Routing

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields

_LIMIT, _ALPHA = 7.0, 1.702
_YARN = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False} | {
    "original_max_position_embeddings": 4096
}


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    config = layer.config
    gate = Gate(config.swiglu_limit, config.swiglu_alpha, interleaved=True)
    mixture = MoELayer(config, layer.router(), layer.stacked_experts(gate, transposed=True))
    heads = attention(layer, sinks=layer.sinks())
    return TransformerBlock(layer.norm("attn_norm"), heads, layer.norm("mlp_norm"), mixture)


def _config(fields: Fields) -> dict[str, Any]:
    config: dict[str, Any] = {
        "num_experts": fields.integer("num_local_experts", "num_experts"),
        "num_experts_per_tok": fields.integer("num_experts_per_tok", "experts_per_token"),
        "routing": Routing("softmax_of_chosen"),
        "swiglu_limit": fields.number("swiglu_limit"),
        "swiglu_alpha": fields.number("swiglu_alpha"),
    }
    if fields.get("layer_types") is None:
        config["windowed"] = tuple(number % 2 == 0 for number in range(fields.integer("num_hidden_layers") or 1))
    return config


_EXPERTS = {"expert_gate_proj", "expert_up_proj", "expert_down_proj"}
_READ = {"num_local_experts", "num_experts", "num_experts_per_tok", "experts_per_token", "swiglu_limit", "swiglu_alpha"}
GPT_OSS = replace(
    LLAMA,
    name="gpt_oss",
    weights={
        **{role: name for role, name in MIXTRAL.weights.items() if role not in _EXPERTS},
        "sinks": "model.layers.{}.self_attn.sinks",
        "moe_gate": "model.layers.{}.mlp.router.weight",
        "moe_gate_bias": "model.layers.{}.mlp.router.bias",
        "experts_gate_up": "model.layers.{}.mlp.experts.gate_up_proj",
        "experts_gate_up_bias": "model.layers.{}.mlp.experts.gate_up_proj_bias",
        "experts_down": "model.layers.{}.mlp.experts.down_proj",
        "experts_down_bias": "model.layers.{}.mlp.experts.down_proj_bias",
    },
    block=block,
    fields=replace(
        LLAMA_FIELDS,
        read=LLAMA_FIELDS.read - {"mlp_bias", "attention_bias"} | _READ,
        neutral={name: values for name, values in LLAMA_FIELDS.neutral.items() if name not in _READ}
        | {"mlp_bias": (False,)},
        # Of training, an older name of the yarn's original length, and what the tensors tell.
        harmless=LLAMA_FIELDS.harmless
        | {"output_router_logits", "router_aux_loss_coef", "initial_context_length", "attention_bias"},
        defaults={**LLAMA_FIELDS.defaults, "rms_norm_eps": 1e-5, "head_dim": 64, "num_key_value_heads": 8}
        | {"sliding_window": 128, "num_local_experts": 128, "num_experts_per_tok": 4}
        | {"swiglu_limit": _LIMIT, "swiglu_alpha": _ALPHA, "max_position_embeddings": 131072, "rope_scaling": _YARN},
    ),
    config=_config,
    rope_theta=150000.0,
    norm_eps=1e-5,
    recognised_by=("embed_tokens", "q_proj", "sinks", "experts_gate_up"),
    interleaved_gates=True,
    gguf={},
)
