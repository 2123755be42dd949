"""GPT-2: layer norm, learned positions, one joint product for query, key and value, GELU; weights lie as (in, out)."""

from pygpukit.llm.models.fields import GPT2_FIELDS
from pygpukit.llm.models.spec import ModelSpec

GPT2_SPEC = ModelSpec(
    name="gpt2",
    hf_model_type="gpt2",
    embed_tokens="wte.weight",
    position_embed="wpe.weight",
    lm_head="lm_head.weight",
    final_norm="ln_f.weight",
    final_norm_bias="ln_f.bias",
    attn_norm="h.{}.ln_1.weight",
    attn_norm_bias="h.{}.ln_1.bias",
    q_proj="h.{}.attn.c_attn.weight",
    k_proj="h.{}.attn.c_attn.weight",
    v_proj="h.{}.attn.c_attn.weight",
    o_proj="h.{}.attn.c_proj.weight",
    q_bias="h.{}.attn.c_attn.bias",
    k_bias="h.{}.attn.c_attn.bias",
    v_bias="h.{}.attn.c_attn.bias",
    o_bias="h.{}.attn.c_proj.bias",
    q_norm=None,
    k_norm=None,
    mlp_norm="h.{}.ln_2.weight",
    mlp_norm_bias="h.{}.ln_2.bias",
    fc1="h.{}.mlp.c_fc.weight",
    fc1_bias="h.{}.mlp.c_fc.bias",
    fc2="h.{}.mlp.c_proj.weight",
    fc2_bias="h.{}.mlp.c_proj.bias",
    gate_proj=None,
    up_proj=None,
    down_proj=None,
    norm_type="layernorm",
    activation="gelu",
    use_rope=False,
    use_position_embed=True,
    qkv_combined=True,
    weight_transpose=True,
    ignored=("h.{}.attn.bias", "h.{}.attn.masked_bias"),  # masks, which are computed
    fields=GPT2_FIELDS,
)
