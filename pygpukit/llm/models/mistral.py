"""Mistral: LLaMA whose queries see a sliding window of keys."""

from dataclasses import replace

from pygpukit.llm.models.fields import MISTRAL_FIELDS
from pygpukit.llm.models.llama import LLAMA_SPEC

MISTRAL_SPEC = replace(LLAMA_SPEC, name="mistral", hf_model_type="mistral", fields=MISTRAL_FIELDS)
