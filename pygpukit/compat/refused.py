"""Names of the older project that there are not: each is refused with the reason, or with what stands in its place."""

from __future__ import annotations

LLM_INSTEAD = {
    "Llama4Attention": "its chunks and layers without rotation are in Attention, by TransformerConfig",
    "Llama4Block": "its layers are TransformerBlock",
    "Llama4Config": "config.json is read by load(); TransformerConfig has the fields",
    "Llama4MLP": "its dense layers are MLP, its mixtures MoELayer",
    "Llama4Model": "load() reads Llama 4 (text) with its experts, and has the loop, the cache and the tokenizer",
}


def refusal(module: str, name: str) -> str:
    """Why `module` has no attribute `name`, as the message of an AttributeError."""
    full = f"{module}.{name}"
    if module == "pygpukit.llm" and name in LLM_INSTEAD:
        return f"{full} is no class of its own: {LLM_INSTEAD[name]} (docs/llm.md)"
    return f"module {module!r} has no attribute {name!r}"
