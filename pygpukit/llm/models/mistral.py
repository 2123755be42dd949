"""Mistral: LLaMA whose queries see a sliding window of keys."""

from dataclasses import replace

from pygpukit.llm.models.fields import MISTRAL_FIELDS
from pygpukit.llm.models.llama import GGUF, LLAMA
from pygpukit.models.gguf_names import GGUFNames

MISTRAL = replace(
    LLAMA,
    name="mistral",
    fields=MISTRAL_FIELDS,
    recognised_by=(),  # its tensors are LLaMA's
    gguf={"mistral": GGUFNames(GGUF, "MistralForCausalLM", paired_heads=True)},
)
