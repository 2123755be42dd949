"""SmolLM3: LLaMA of whose layers every fourth does not rotate its queries and keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygpukit.llm.models.fields import LLAMA_FIELDS
from pygpukit.llm.models.llama import GGUF, LLAMA
from pygpukit.models.gguf_names import GGUFNames

if TYPE_CHECKING:
    from pygpukit.models.fields import Fields

_INTERVAL = 4
_THETA = 2e6


def _config(fields: Fields) -> dict[str, Any]:
    layers = fields.integer("num_hidden_layers") or 1
    interval = fields.integer("no_rope_layer_interval") or _INTERVAL
    flags = fields.get("no_rope_layers")  # 1 where a layer rotates, whatever the name says
    if flags is None:
        flags = [int((number + 1) % interval != 0) for number in range(layers)]
    if not isinstance(flags, list) or len(flags) < layers or any(flag not in (0, 1) for flag in flags):
        raise fields.error(f"must be a list of 0 or 1 for each of {layers} layers", "no_rope_layers")
    rotated = tuple(flag == 1 for flag in flags[:layers])
    config: dict[str, Any] = {"rotated": rotated}
    if fields.get("layer_types") is None and fields.flag("use_sliding_window"):
        config["windowed"] = tuple(not rotates for rotates in rotated)
    return config


_READ = {"no_rope_layers", "no_rope_layer_interval", "use_sliding_window"}
SMOLLM3 = replace(
    LLAMA,
    name="smollm3",
    fields=replace(
        LLAMA_FIELDS,
        read=LLAMA_FIELDS.read | _READ,
        neutral={name: values for name, values in LLAMA_FIELDS.neutral.items() if name not in _READ},
        harmless=LLAMA_FIELDS.harmless | {"max_window_layers"},
        defaults={**LLAMA_FIELDS.defaults, "num_key_value_heads": 4, "use_sliding_window": False}
        | {"tie_word_embeddings": True, "max_position_embeddings": 32768},
    ),
    recognised_by=(),  # its tensors are LLaMA's
    config=_config,
    rope_theta=_THETA,
    gguf={"smollm3": GGUFNames(GGUF, "SmolLM3ForCausalLM", paired_heads=True)},
)
