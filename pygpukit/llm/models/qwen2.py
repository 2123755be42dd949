"""Qwen2 and Qwen2.5: LLaMA with biases at the query, key and value products."""

from dataclasses import replace

from pygpukit.llm.models.fields import QWEN2_FIELDS
from pygpukit.llm.models.llama import GGUF, LLAMA, WEIGHTS
from pygpukit.models.gguf_names import GGUFNames

QWEN2 = replace(
    LLAMA,
    name="qwen2",
    weights={role: name for role, name in WEIGHTS.items() if role != "o_bias"},
    fields=QWEN2_FIELDS,
    recognised_by=("embed_tokens", "q_proj", "q_bias"),
    gguf={"qwen2": GGUFNames(GGUF, "Qwen2ForCausalLM")},
)
