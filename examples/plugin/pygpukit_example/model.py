"""An architecture: models whose config.json says `"model_type": "example_llama"`."""

from __future__ import annotations

from dataclasses import replace

from pygpukit.llm.models.llama import LLAMA

# LLaMA under another name; what else differs is written as its own file of pygpukit/llm/models does it. Without
# recognised_by it is taken by its name alone.
EXAMPLE_LLAMA = replace(LLAMA, name="example_llama", recognised_by=(), gguf={})
