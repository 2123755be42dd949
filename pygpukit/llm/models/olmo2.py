"""OLMo 2: LLaMA whose norms stand behind attention and feed-forward, and over all query and all key heads together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import GGUF, LLAMA, WEIGHTS, attention, mlp
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.block import TransformerBlock

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights

_WITHOUT = ("attn_norm", "mlp_norm", "gate_bias", "up_bias", "down_bias")


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    heads = attention(layer, layer.norm_of_heads("q_norm", "q_proj"), layer.norm_of_heads("k_norm", "k_proj"))
    return TransformerBlock(None, heads, None, mlp(layer), layer.norm("post_attn_norm"), layer.norm("post_mlp_norm"))


OLMO2 = replace(
    LLAMA,
    name="olmo2",
    weights={
        **{role: name for role, name in WEIGHTS.items() if role not in _WITHOUT},
        "q_norm": "model.layers.{}.self_attn.q_norm.weight",
        "k_norm": "model.layers.{}.self_attn.k_norm.weight",
        "post_attn_norm": "model.layers.{}.post_attention_layernorm.weight",
        "post_mlp_norm": "model.layers.{}.post_feedforward_layernorm.weight",
    },
    block=block,
    fields=replace(
        LLAMA_FIELDS,
        read=LLAMA_FIELDS.read - {"mlp_bias"},
        neutral={**LLAMA_FIELDS.neutral, "mlp_bias": (False,)},
        defaults={**LLAMA_FIELDS.defaults, "rms_norm_eps": 1e-5},
    ),
    recognised_by=("embed_tokens", "q_proj", "q_norm", "post_mlp_norm"),
    norm_eps=1e-5,
    gguf={
        "olmo2": GGUFNames(
            {
                **{name: ours for name, ours in GGUF.items() if name not in ("attn_norm", "ffn_norm")},
                "attn_q_norm": "self_attn.q_norm",
                "attn_k_norm": "self_attn.k_norm",
                "post_attention_norm": "post_attention_layernorm",
                "post_ffw_norm": "post_feedforward_layernorm",
            },
            "Olmo2ForCausalLM",
        )
    },
)
