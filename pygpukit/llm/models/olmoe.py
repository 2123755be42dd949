"""OLMoE: norms over all query and all key heads together, and mixtures of experts in every layer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import LLAMA, attention
from pygpukit.llm.models.mixtral import GGUF_READ, MIXTRAL, gguf_experts, mixture
from pygpukit.llm.models.qwen3_moe import GGUF_EXPERTS, GGUF_PARTS, QWEN3_MOE
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.moe.routing import Routing

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields
    from pygpukit.models.gguf_config import Metadata

_EXPERTS = ("moe_gate", "expert_gate_proj", "expert_up_proj", "expert_down_proj", "q_norm", "k_norm")


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    heads = attention(layer, layer.norm_of_heads("q_norm", "q_proj"), layer.norm_of_heads("k_norm", "k_proj"))
    return TransformerBlock(layer.norm("attn_norm"), heads, layer.norm("mlp_norm"), mixture(layer))


def _config(fields: Fields) -> dict[str, Any]:
    return {
        "num_experts": fields.integer("num_experts", "num_local_experts"),
        "num_experts_per_tok": fields.integer("num_experts_per_tok"),
        "routing": Routing(normalised=fields.flag("norm_topk_prob") is True),
    }


def _gguf_config(data: Metadata) -> dict[str, Any]:
    return {"norm_topk_prob": False} | gguf_experts(data)


_READ = {"num_experts", "num_local_experts", "num_experts_per_tok", "norm_topk_prob"}
OLMOE = replace(
    LLAMA,
    name="olmoe",
    weights={**MIXTRAL.weights, **{role: QWEN3_MOE.weights[role] for role in _EXPERTS}},
    block=block,
    fields=replace(
        LLAMA_FIELDS,
        read=LLAMA_FIELDS.read - {"mlp_bias"} | _READ,
        neutral={name: values for name, values in LLAMA_FIELDS.neutral.items() if name not in _READ}
        | {"mlp_bias": (False,)},
        harmless=LLAMA_FIELDS.harmless | {"output_router_logits", "router_aux_loss_coef"},  # of training
        defaults={**LLAMA_FIELDS.defaults, "rms_norm_eps": 1e-5, "num_experts": 64, "num_experts_per_tok": 8}
        | {"norm_topk_prob": False},
    ),
    config=_config,
    norm_eps=1e-5,
    gguf={
        "olmoe": GGUFNames(GGUF_PARTS, "OlmoeForCausalLM", config=_gguf_config, read=GGUF_READ, experts=GGUF_EXPERTS)
    },
    recognised_by=(),  # config.json tells it from Qwen3-MoE, whose tensors have the same names
)
