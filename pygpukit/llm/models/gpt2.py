"""GPT-2: layer norm, learned positions, one joint product for query, key and value, GELU; weights lie as (in, out)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.architecture import Architecture
from pygpukit.llm.models.fields import GPT2_FIELDS
from pygpukit.models.gguf_names import GGUFNames
from pygpukit.nn.attention.layer import Attention
from pygpukit.nn.block import TransformerBlock
from pygpukit.nn.mlp import MLP

if TYPE_CHECKING:
    from pygpukit.llm.layer_weights import LayerWeights
    from pygpukit.models.gguf_config import Metadata


def block(layer: LayerWeights) -> TransformerBlock:
    """One layer."""
    config = layer.config
    qkv, out = layer.linear("qkv", "qkv_proj"), layer.linear("o", "o_proj")
    fc1, fc2 = layer.linear("fc1", "fc1"), layer.linear("fc2", "fc2")
    attention = Attention(qkv, None, None, out, config, layer=layer.number)
    mlp = MLP(config, fc1, None, fc2)
    return TransformerBlock(layer.norm("attn_norm"), attention, layer.norm("mlp_norm"), mlp)


_GGUF = {
    "token_embd": "wte",
    "position_embd": "wpe",
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
    "output_norm": "ln_f",
    "output": "lm_head",
}


def _gguf_config(data: Metadata) -> dict[str, Any]:
    width = data.integer("embedding_length")
    return {
        "n_positions": data.integer("context_length"),
        "n_embd": width,
        "n_layer": data.integer("block_count"),
        "n_head": data.integer("attention.head_count"),
        "n_inner": data.integer("feed_forward_length", 4 * width),
        "layer_norm_epsilon": data.epsilon("attention.layer_norm_epsilon"),
        "activation_function": "gelu_new",
    }


GPT2 = Architecture(
    name="gpt2",
    weights={
        "embed_tokens": "wte.weight",
        "position_embed": "wpe.weight",
        "attn_norm": "h.{}.ln_1.weight",
        "attn_norm_bias": "h.{}.ln_1.bias",
        "qkv_proj": "h.{}.attn.c_attn.weight",
        "qkv_bias": "h.{}.attn.c_attn.bias",
        "o_proj": "h.{}.attn.c_proj.weight",
        "o_bias": "h.{}.attn.c_proj.bias",
        "mlp_norm": "h.{}.ln_2.weight",
        "mlp_norm_bias": "h.{}.ln_2.bias",
        "fc1": "h.{}.mlp.c_fc.weight",
        "fc1_bias": "h.{}.mlp.c_fc.bias",
        "fc2": "h.{}.mlp.c_proj.weight",
        "fc2_bias": "h.{}.mlp.c_proj.bias",
        "final_norm": "ln_f.weight",
        "final_norm_bias": "ln_f.bias",
        "lm_head": "lm_head.weight",
    },
    block=block,
    fields=GPT2_FIELDS,
    activation_field="activation_function",
    activations={
        "gelu_new": "gelu",
        "gelu_pytorch_tanh": "gelu",
        "gelu_fast": "gelu",
        "gelu": "gelu_erf",
        "gelu_python": "gelu_erf",
    },
    recognised_by=("embed_tokens", "qkv_proj"),
    norm_type="layernorm",
    use_rope=False,
    unused=("h.{}.attn.bias", "h.{}.attn.masked_bias"),  # masks, which are computed
    transposed=True,
    gguf={
        "gpt2": GGUFNames(
            _GGUF,
            "GPT2LMHeadModel",
            layers="h",
            transposed=frozenset({"c_attn", "c_proj", "c_fc"}),
            config=_gguf_config,
            is_llama=False,
        )
    },
)
