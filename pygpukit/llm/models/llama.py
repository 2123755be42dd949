"""LLaMA 2 and 3 (and SmolLM2): RMS norm, rotary positions, grouped key heads, SwiGLU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.llm.models.architecture import Architecture
from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.mlp import MLP
from pygpukit.nn.norm import Norm

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.llm.layer_weights import LayerWeights

WEIGHTS = {
    "embed_tokens": "model.embed_tokens.weight",
    "attn_norm": "model.layers.{}.input_layernorm.weight",
    "q_proj": "model.layers.{}.self_attn.q_proj.weight",
    "k_proj": "model.layers.{}.self_attn.k_proj.weight",
    "v_proj": "model.layers.{}.self_attn.v_proj.weight",
    "o_proj": "model.layers.{}.self_attn.o_proj.weight",
    "q_bias": "model.layers.{}.self_attn.q_proj.bias",
    "k_bias": "model.layers.{}.self_attn.k_proj.bias",
    "v_bias": "model.layers.{}.self_attn.v_proj.bias",
    "o_bias": "model.layers.{}.self_attn.o_proj.bias",
    "mlp_norm": "model.layers.{}.post_attention_layernorm.weight",
    "gate_proj": "model.layers.{}.mlp.gate_proj.weight",
    "up_proj": "model.layers.{}.mlp.up_proj.weight",
    "down_proj": "model.layers.{}.mlp.down_proj.weight",
    "gate_bias": "model.layers.{}.mlp.gate_proj.bias",
    "up_bias": "model.layers.{}.mlp.up_proj.bias",
    "down_bias": "model.layers.{}.mlp.down_proj.bias",
    "final_norm": "model.norm.weight",
    "lm_head": "lm_head.weight",
}
GGUF = {
    "token_embd": "model.embed_tokens",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "output_norm": "model.norm",
    "output": "lm_head",
}


def attention(
    layer: LayerWeights, q_norm: Norm | None = None, k_norm: Norm | None = None, sinks: GPUArray | None = None
) -> Attention:
    """Query, key and value in one product."""
    qkv, out = layer.linear("qkv", "q_proj", "k_proj", "v_proj"), layer.linear("o", "o_proj")
    return Attention(qkv, None, None, out, layer.config, q_norm=q_norm, k_norm=k_norm, layer=layer.number, sinks=sinks)


def mlp(layer: LayerWeights) -> MLP:
    """Gate and up in one product."""
    gate_up, down = layer.linear("gate_up", "gate_proj", "up_proj"), layer.linear("down", "down_proj")
    return MLP(layer.config, gate_proj=gate_up, down_proj=down)


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    return TransformerBlock(layer.norm("attn_norm"), attention(layer), layer.norm("mlp_norm"), mlp(layer))


LLAMA = Architecture(
    name="llama",
    weights=WEIGHTS,
    block=block,
    fields=LLAMA_FIELDS,
    activation_field="hidden_act",
    activations={"silu": "silu", "swish": "silu"},
    recognised_by=("embed_tokens", "q_proj"),
    norm_eps=1e-6,
    # Frequencies that older files keep; they are computed.
    unused=("model.layers.{}.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"),
    gguf={"llama": GGUFNames(GGUF, "LlamaForCausalLM", paired_heads=True)},
)
