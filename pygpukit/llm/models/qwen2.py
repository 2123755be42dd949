"""Qwen2 and Qwen2.5: LLaMA with biases at the query, key and value products."""

from dataclasses import replace

from pygpukit.llm.models.fields import QWEN2_FIELDS
from pygpukit.llm.models.llama import LLAMA_SPEC

QWEN2_SPEC = replace(
    LLAMA_SPEC,
    name="qwen2",
    hf_model_type="qwen2",
    o_bias=None,
    fields=QWEN2_FIELDS,
)
