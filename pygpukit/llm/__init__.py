"""Language models: files, tokenizers, chat templates, and what runs them. Every name is fetched on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Module: the public names that live there. tools/name_stubs.py writes __init__.pyi, for type checkers, from it.
_HOMES = {
    "pygpukit.llm.template": (
        "CHATML_TEMPLATE ChatMessage ChatTemplate LLAMA2_TEMPLATE LLAMA3_TEMPLATE MISTRAL_TEMPLATE QWEN_TEMPLATE "
        "TEMPLATES apply_chat_template create_chat_prompt format_chat_messages"
    ),
    "pygpukit.llm.tokenizer": "TextStream Tokenizer",
    "pygpukit.models.safetensors": "Dtype SafeTensorsFile ShardedSafeTensorsFile TensorInfo load_safetensors",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pygpukit.llm' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
