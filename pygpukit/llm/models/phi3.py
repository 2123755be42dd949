"""Phi-3 and Phi-4: LLaMA whose query, key and value lie in one tensor, as gate and up do. Some see a sliding window of
keys, some rotate a part of each head alone, by frequencies of their own beyond the context of their training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.architecture import Rope
from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import GGUF, LLAMA, WEIGHTS
from pygpukit.llm.models.rope import rope_of, rope_parameters
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.mlp import MLP

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.fields import Fields
    from pygpukit.models.gguf_config import Metadata

_ATTENTION_FACTOR, _ROTARY = "rope.scaling.attn_factor", "rope.dimension_count"  # GGUF's
_PART = "partial_rotary_factor"
_APART = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    config = layer.config
    qkv, out = layer.linear("qkv", "qkv_proj"), layer.linear("o", "o_proj")
    attention = Attention(qkv, None, None, out, config, layer=layer.number)
    mlp = MLP(config, gate_proj=layer.linear("gate_up", "gate_up_proj"), down_proj=layer.linear("down", "down_proj"))
    return TransformerBlock(layer.norm("attn_norm"), attention, layer.norm("mlp_norm"), mlp)


def _config(fields: Fields) -> dict[str, Any]:
    width, heads = fields.integer("hidden_size") or 1, fields.integer("num_attention_heads") or 1
    dim = fields.integer("head_dim") or width // heads
    rotary = int(dim * (rope_parameters(fields).number(_PART) or fields.number(_PART) or 1.0))
    return {} if rotary == dim else {"rotary_dim": rotary}


def _rope(fields: Fields, default_theta: float) -> Rope:
    return rope_of(fields, default_theta, frozenset({_PART}))


def _gguf_config(data: Metadata) -> dict[str, Any]:
    dim = data.integer("attention.key_length", data.integer("embedding_length") // data.integer("attention.head_count"))
    context = data.integer("context_length")
    strength = data.fields.number(_ATTENTION_FACTOR)
    return {
        _PART: (data.integer(_ROTARY, dim) + 0.5) / dim,  # elements are counted by rounding down
        "original_max_position_embeddings": data.integer("rope.scaling.original_context_length", context),
        "rope_scaling": {} if strength is None else {"attention_factor": strength},
    }


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
        read=LLAMA_FIELDS.read - {"attention_bias", "mlp_bias"} | {_PART, "original_max_position_embeddings"},
        neutral={name: values for name, values in LLAMA_FIELDS.neutral.items() if name != _PART}
        | {"attention_bias": (False,), "mlp_bias": (False,)},
        defaults={**LLAMA_FIELDS.defaults, "rms_norm_eps": 1e-5, "original_max_position_embeddings": 4096},
    ),
    config=_config,
    rope=_rope,
    recognised_by=("embed_tokens", "qkv_proj", "gate_up_proj"),
    norm_eps=1e-5,
    gguf={
        "phi3": GGUFNames(
            {**GGUF, "attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
            "Phi3ForCausalLM",
            config=_gguf_config,
            read=frozenset({_ATTENTION_FACTOR, _ROTARY}),
            longrope=True,
        )
    },
)
