"""Mixtral: Mistral whose feed-forward layers are mixtures of experts, weighed by the softmax of the chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.fields import MISTRAL_FIELDS
from pygpukit.llm.models.llama import LLAMA, WEIGHTS, attention
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.moe.layer import MoELayer
from pygpukit.nn.moe.routing import Routing

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields

_MLP = ("gate_proj", "up_proj", "down_proj", "gate_bias", "up_bias", "down_bias")


def mixture(layer: LayerWeights) -> MoELayer:
    """A router and its experts."""
    return MoELayer(layer.config, layer.router(), layer.experts())


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    return TransformerBlock(layer.norm("attn_norm"), attention(layer), layer.norm("mlp_norm"), mixture(layer))


def _config(fields: Fields) -> dict[str, Any]:
    return {
        "num_experts": fields.integer("num_local_experts", "num_experts"),
        "num_experts_per_tok": fields.integer("num_experts_per_tok"),
        "routing": Routing(normalised=True),
    }


_READ = {"num_local_experts", "num_experts", "num_experts_per_tok"}
MIXTRAL = replace(
    LLAMA,
    name="mixtral",
    weights={
        **{role: name for role, name in WEIGHTS.items() if role not in _MLP},
        "moe_gate": "model.layers.{}.block_sparse_moe.gate.weight",
        "expert_gate_proj": "model.layers.{}.block_sparse_moe.experts.{}.w1.weight",
        "expert_up_proj": "model.layers.{}.block_sparse_moe.experts.{}.w3.weight",
        "expert_down_proj": "model.layers.{}.block_sparse_moe.experts.{}.w2.weight",
    },
    block=block,
    fields=replace(
        MISTRAL_FIELDS,
        read=MISTRAL_FIELDS.read | _READ,
        neutral={name: values for name, values in MISTRAL_FIELDS.neutral.items() if name not in _READ},
        # Of training.
        harmless=MISTRAL_FIELDS.harmless | {"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"},
        defaults={**MISTRAL_FIELDS.defaults, "rms_norm_eps": 1e-5, "sliding_window": None}
        | {"num_local_experts": 8, "num_experts_per_tok": 2},
    ),
    config=_config,
    rope_theta=1e6,
    norm_eps=1e-5,
    recognised_by=("embed_tokens", "q_proj", "moe_gate"),
    gguf={},
)
