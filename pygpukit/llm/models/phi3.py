"""Phi-3: LLaMA whose query, key and value lie in one tensor, as gate and up do; most see a sliding window of keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import GGUF, LLAMA, WEIGHTS
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.mlp import MLP

if TYPE_CHECKING:
    from pygpukit.llm.weights import LayerWeights

_APART = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    config = layer.config
    qkv, out = layer.linear("qkv", "qkv_proj"), layer.linear("o", "o_proj")
    attention = Attention(qkv, None, None, out, config, layer=layer.number)
    mlp = MLP(config, gate_proj=layer.linear("gate_up", "gate_up_proj"), down_proj=layer.linear("down", "down_proj"))
    return TransformerBlock(layer.norm("attn_norm"), attention, layer.norm("mlp_norm"), mlp)


PHI3 = replace(
    LLAMA,
    name="phi3",
    weights={
        **{role: name for role, name in WEIGHTS.items() if role not in _APART and not role.endswith("_bias")},
        "qkv_proj": "model.layers.{}.self_attn.qkv_proj.weight",
        "gate_up_proj": "model.layers.{}.mlp.gate_up_proj.weight",
    },
    block=block,
    fields=replace(
        LLAMA_FIELDS,
        read=LLAMA_FIELDS.read - {"attention_bias", "mlp_bias"},
        neutral={**LLAMA_FIELDS.neutral, "attention_bias": (False,), "mlp_bias": (False,)},
        defaults={**LLAMA_FIELDS.defaults, "rms_norm_eps": 1e-5},
    ),
    recognised_by=("embed_tokens", "qkv_proj", "gate_up_proj"),
    norm_eps=1e-5,
    gguf={
        "phi3": GGUFNames(
            {**GGUF, "attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
            "Phi3ForCausalLM",
        )
    },
)
