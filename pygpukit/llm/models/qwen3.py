"""Qwen3: LLaMA with an RMS norm over each query and key head, before their rotation."""

from dataclasses import replace

from pygpukit.llm.models.llama import LLAMA_SPEC

QWEN3_SPEC = replace(
    LLAMA_SPEC,
    name="qwen3",
    hf_model_type="qwen3",
    q_norm="model.layers.{}.self_attn.q_norm.weight",
    k_norm="model.layers.{}.self_attn.k_norm.weight",
    use_qk_norm=True,
    default_norm_eps=1e-6,
    default_rope_theta=1e6,
)
