"""Mixtral: Mistral whose feed-forward layers are mixtures of experts, weighed by the softmax of the chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.fields import MISTRAL_FIELDS
from pygpukit.llm.models.llama import GGUF, LLAMA, WEIGHTS, attention
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.moe.layer import MoELayer
from pygpukit.nn.moe.routing import Routing

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields
    from pygpukit.models.gguf_config import Metadata

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


def gguf_experts(data: Metadata) -> dict[str, Any]:
    """The fields of a mixture from a GGUF file's metadata."""
    config = {"num_experts": data.integer("expert_count"), "num_experts_per_tok": data.integer("expert_used_count")}
    inner = data.fields.integer("expert_feed_forward_length")
    return config if inner is None else {**config, "moe_intermediate_size": inner}


def _gguf_config(data: Metadata) -> dict[str, Any]:
    config = gguf_experts(data)
    return {"model_type": "mixtral", "num_local_experts": config.pop("num_experts")} | config


_EXPERT = {"ffn_gate_exps": "w1", "ffn_up_exps": "w3", "ffn_down_exps": "w2"}
GGUF_READ = frozenset({"expert_count", "expert_used_count"})
GGUF_PLAIN = {part: name for part, name in GGUF.items() if not part.startswith(("ffn_gate", "ffn_up", "ffn_down"))}
GGUF_MIXTRAL = GGUFNames(
    {**GGUF_PLAIN, "ffn_gate_inp": "block_sparse_moe.gate"},
    "MixtralForCausalLM",
    paired_heads=True,
    config=_gguf_config,
    read=GGUF_READ,
    experts={part: f"block_sparse_moe.experts.{{}}.{name}" for part, name in _EXPERT.items()},
)
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
    gguf={"llama": replace(LLAMA.gguf["llama"], mixture=GGUF_MIXTRAL)},  # of LLaMA's name in such files
)
