"""Qwen3: LLaMA with an RMS norm over each query and key head, before their rotation."""

from dataclasses import replace

from pygpukit.llm.models.fields import QWEN3_FIELDS
from pygpukit.llm.models.llama import LLAMA_SPEC

QWEN3_SPEC = replace(
    LLAMA_SPEC,
    name="qwen3",
    hf_model_type="qwen3",
    q_norm="model.layers.{}.self_attn.q_norm.weight",
    k_norm="model.layers.{}.self_attn.k_norm.weight",
    use_qk_norm=True,
    fields=QWEN3_FIELDS,
)
