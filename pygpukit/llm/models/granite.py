"""Granite: LLaMA with factors of its embeddings, its scores, what its layers add, and its logits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import GGUF, LLAMA
from pygpukit.models.gguf_names import GGUFNames

if TYPE_CHECKING:
    from pygpukit.models.fields import Fields
    from pygpukit.models.gguf_config import Metadata

# Ours, and by GGUF's names: 0 stands for none there.
_FACTORS = {
    "embedding_multiplier": "embedding_scale",
    "attention_multiplier": "attention.scale",
    "residual_multiplier": "residual_scale",
    "logits_scaling": "logit_scale",
}


def _config(fields: Fields) -> dict[str, Any]:
    embedding, attention, residual, logits = (fields.number(name) or 1.0 for name in _FACTORS)
    return {
        "embedding_scale": embedding,
        "attention_scale": attention,
        "residual_scale": residual,
        "logit_scale": 1 / logits,
    }


def _gguf_config(data: Metadata) -> dict[str, Any]:
    dim = data.integer("attention.key_length", data.integer("embedding_length") // data.integer("attention.head_count"))
    plain = {"attention_multiplier": dim**-0.5}

    def factor(ours: str, theirs: str) -> float:
        return (data.own.get(theirs) and data.fields.number(theirs)) or plain.get(ours, 1.0)

    return {ours: factor(ours, theirs) for ours, theirs in _FACTORS.items()}


GRANITE = replace(
    LLAMA,
    name="granite",
    fields=replace(
        LLAMA_FIELDS,
        read=LLAMA_FIELDS.read | set(_FACTORS),
        neutral={name: values for name, values in LLAMA_FIELDS.neutral.items() if name not in _FACTORS},
    ),
    recognised_by=(),  # its tensors are LLaMA's
    config=_config,
    gguf={
        "granite": GGUFNames(
            GGUF,
            "GraniteForCausalLM",
            paired_heads=True,
            config=_gguf_config,
            read=frozenset(_FACTORS.values()),
        )
    },
)
