"""gpt-oss: sinks in attention, a window in every other layer, and experts with biases and a clamped SwiGLU."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import LLAMA, attention
from pygpukit.llm.models.mixtral import GGUF_PLAIN, GGUF_READ, MIXTRAL, gguf_experts
from pygpukit.models.gguf_config import rope_scaling
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.moe.experts import Gate
from pygpukit.nn.moe.layer import MoELayer
from pygpukit.nn.moe.routing import Routing

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields
    from pygpukit.models.gguf_config import Metadata

_LIMIT, _ALPHA = 7.0, 1.702
_YARN = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False} | {
    "original_max_position_embeddings": 4096
}


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    config = layer.config
    gate = Gate(config.swiglu_limit, config.swiglu_alpha)
    if layer.has("experts_gate_up"):
        experts = layer.stacked_experts(replace(gate, interleaved=True), transposed=True)
    else:  # of a GGUF file, which has gates and ups apart
        experts = layer.experts(gate)
    mixture = MoELayer(config, layer.router(), experts)
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


def _gguf_config(data: Metadata) -> dict[str, Any]:
    experts = gguf_experts(data)
    scaling = rope_scaling(data.fields)
    return {
        "model_type": "gpt_oss",
        "num_local_experts": experts["num_experts"],
        "num_experts_per_tok": experts["num_experts_per_tok"],
        "intermediate_size": data.integer("expert_feed_forward_length"),
        "mlp_bias": False,  # of experts alone, which their tensors tell
        "rope_scaling": None if scaling is None else {**scaling, "truncate": False},
    }


_EXPERT = "model.layers.{}.mlp.experts.{}."
_GGUF_EXPERTS = {"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj", "ffn_down_exps": "down_proj"}
_READ = {"num_local_experts", "num_experts", "num_experts_per_tok", "experts_per_token", "swiglu_limit", "swiglu_alpha"}
GPT_OSS = replace(
    LLAMA,
    name="gpt_oss",
    weights={
        **MIXTRAL.weights,
        **{f"expert_{part}_proj": f"{_EXPERT}{part}_proj.weight" for part in ("gate", "up", "down")},
        **{f"expert_{part}_bias": f"{_EXPERT}{part}_proj.bias" for part in ("gate", "up", "down")},
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
    gguf={
        "gpt-oss": GGUFNames(
            {
                **{part: name for part, name in GGUF_PLAIN.items() if part != "ffn_norm"},
                "post_attention_norm": "post_attention_layernorm",
                "attn_sinks": "self_attn.sinks",
                "ffn_gate_inp": "mlp.router",
            },
            "GptOssForCausalLM",
            config=_gguf_config,
            read=GGUF_READ | {"expert_feed_forward_length"},
            experts={part: f"mlp.experts.{{}}.{name}" for part, name in _GGUF_EXPERTS.items()},
            bare=frozenset({"attn_sinks"}),
        )
    },
)
