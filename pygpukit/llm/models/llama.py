"""LLaMA 2 and 3 (and SmolLM2): RMS norm, rotary positions, grouped key heads, SwiGLU; Mistral by its window alone."""

from pygpukit.llm.models.spec import ModelSpec

LLAMA_SPEC = ModelSpec(
    name="llama",
    hf_model_type="llama",
    embed_tokens="model.embed_tokens.weight",
    position_embed=None,
    lm_head="lm_head.weight",
    final_norm="model.norm.weight",
    final_norm_bias=None,
    attn_norm="model.layers.{}.input_layernorm.weight",
    attn_norm_bias=None,
    q_proj="model.layers.{}.self_attn.q_proj.weight",
    k_proj="model.layers.{}.self_attn.k_proj.weight",
    v_proj="model.layers.{}.self_attn.v_proj.weight",
    o_proj="model.layers.{}.self_attn.o_proj.weight",
    q_bias="model.layers.{}.self_attn.q_proj.bias",
    k_bias="model.layers.{}.self_attn.k_proj.bias",
    v_bias="model.layers.{}.self_attn.v_proj.bias",
    o_bias="model.layers.{}.self_attn.o_proj.bias",
    q_norm=None,
    k_norm=None,
    mlp_norm="model.layers.{}.post_attention_layernorm.weight",
    mlp_norm_bias=None,
    fc1=None,
    fc1_bias=None,
    fc2=None,
    fc2_bias=None,
    gate_proj="model.layers.{}.mlp.gate_proj.weight",
    up_proj="model.layers.{}.mlp.up_proj.weight",
    down_proj="model.layers.{}.mlp.down_proj.weight",
)
