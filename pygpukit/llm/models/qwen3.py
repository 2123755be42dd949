"""Qwen3: LLaMA with an RMS norm over each query and key head, before their rotation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pygpukit.llm.models.fields import QWEN3_FIELDS
from pygpukit.llm.models.llama import GGUF, LLAMA, WEIGHTS, attention, mlp
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.block import TransformerBlock

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    heads = attention(layer, layer.head_norm("q_norm"), layer.head_norm("k_norm"))
    return TransformerBlock(layer.norm("attn_norm"), heads, layer.norm("mlp_norm"), mlp(layer))


QWEN3 = replace(
    LLAMA,
    name="qwen3",
    weights={
        **WEIGHTS,
        "q_norm": "model.layers.{}.self_attn.q_norm.weight",
        "k_norm": "model.layers.{}.self_attn.k_norm.weight",
    },
    block=block,
    fields=QWEN3_FIELDS,
    recognised_by=("embed_tokens", "q_proj", "q_norm"),
    gguf={
        "qwen3": GGUFNames(
            {**GGUF, "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}, "Qwen3ForCausalLM"
        )
    },
)
