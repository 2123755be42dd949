"""Qwen3-MoE: Qwen3 of whose layers all, or some, are mixtures of experts, weighed by the softmax of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.llama import attention, mlp
from pygpukit.llm.models.mixtral import GGUF_READ, gguf_experts, mixture
from pygpukit.llm.models.qwen3 import QWEN3
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.moe.routing import Routing

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields
    from pygpukit.models.gguf_config import Metadata


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    heads = attention(layer, layer.head_norm("q_norm"), layer.head_norm("k_norm"))
    feed_forward = mixture(layer) if layer.config.is_sparse(layer.number) else mlp(layer)
    return TransformerBlock(layer.norm("attn_norm"), heads, layer.norm("mlp_norm"), feed_forward)


def _config(fields: Fields) -> dict[str, Any]:
    step = fields.integer("decoder_sparse_step") or 1
    dense = fields.get("mlp_only_layers") or []
    if not isinstance(dense, list) or any(type(number) is not int for number in dense):
        raise fields.error("must be a list of numbers of layers", "mlp_only_layers")
    layers = range(fields.integer("num_hidden_layers") or 1)
    return {
        "num_experts": fields.integer("num_experts", "num_local_experts"),
        "num_experts_per_tok": fields.integer("num_experts_per_tok"),
        "moe_intermediate_size": fields.integer("moe_intermediate_size"),
        "routing": Routing(normalised=fields.flag("norm_topk_prob") is True),
        "sparse": tuple(number not in dense and (number + 1) % step == 0 for number in layers),
    }


def _gguf_config(data: Metadata) -> dict[str, Any]:
    return {"model_type": "qwen3_moe", "norm_topk_prob": True} | gguf_experts(data)


_PARTS = {"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj", "ffn_down_exps": "down_proj"}
GGUF_EXPERTS = {part: f"mlp.experts.{{}}.{name}" for part, name in _PARTS.items()}
GGUF_PARTS = {**QWEN3.gguf["qwen3"].parts, "ffn_gate_inp": "mlp.gate"}
_GGUF_READ = GGUF_READ | {"expert_feed_forward_length"}
_READ = {"num_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob"} | {
    "decoder_sparse_step",
    "mlp_only_layers",
}
QWEN3_MOE = replace(
    QWEN3,
    name="qwen3_moe",
    weights={
        **QWEN3.weights,
        "moe_gate": "model.layers.{}.mlp.gate.weight",
        "expert_gate_proj": "model.layers.{}.mlp.experts.{}.gate_proj.weight",
        "expert_up_proj": "model.layers.{}.mlp.experts.{}.up_proj.weight",
        "expert_down_proj": "model.layers.{}.mlp.experts.{}.down_proj.weight",
    },
    block=block,
    fields=replace(
        QWEN3.fields,
        read=QWEN3.fields.read | _READ,
        neutral={name: values for name, values in QWEN3.fields.neutral.items() if name not in _READ},
        harmless=QWEN3.fields.harmless | {"output_router_logits", "router_aux_loss_coef"},  # of training
        defaults={**QWEN3.fields.defaults, "head_dim": None, "num_key_value_heads": 4, "moe_intermediate_size": 768}
        | {"num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": False},
    ),
    config=_config,
    recognised_by=("embed_tokens", "q_proj", "q_norm", "moe_gate"),
    gguf={
        "qwen3moe": GGUFNames(
            GGUF_PARTS, "Qwen3MoeForCausalLM", config=_gguf_config, read=_GGUF_READ, experts=GGUF_EXPERTS
        )
    },
)
