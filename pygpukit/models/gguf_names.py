"""Names of an architecture's tensors: GGUF's and Hugging Face's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pygpukit.models.gguf_config import Metadata

_NAME = re.compile(r"(?:blk\.(\d{1,6})\.)?([a-z_0-9]+)\.(weight|bias)")


@dataclass(frozen=True)
class GGUFNames:
    """The names of one architecture, and how its file differs from Hugging Face's.

    parts: Hugging Face's name of each part, without that of its layer, which begins with `layers` and a number.
    class_name: the class in config.json. paired_heads: rows of q and k are ordered for rope on neighbouring pairs.
    transposed: parts whose matrix Hugging Face keeps with inputs as rows. norm_offset: what its norms hold above
    Hugging Face's. config: further fields of config.json from the metadata; is_llama: beside LLaMA's, not in their
    place. read: further keys of metadata that it reads. longrope: its file may keep divisors of the frequencies of
    rotation, for short and for long contexts. experts: Hugging Face's name of each part of an expert, with a place for
    its number, of which the file has all experts in one tensor. mixture: the names in files of it with experts.
    bare: parts whose tensors Hugging Face names without ".weight".
    """

    parts: Mapping[str, str]
    class_name: str
    layers: str = "model.layers"
    paired_heads: bool = False
    transposed: frozenset[str] = frozenset()
    norm_offset: float = 0.0
    config: Callable[[Metadata], dict[str, Any]] | None = None
    is_llama: bool = True
    read: frozenset[str] = frozenset()
    longrope: bool = False
    experts: Mapping[str, str] = field(default_factory=dict)
    mixture: GGUFNames | None = None
    bare: frozenset[str] = frozenset()

    def tensor_name(self, name: str) -> str | None:
        """Hugging Face's name of a tensor; None where it has none."""
        match = _NAME.fullmatch(name)
        if not match or match[2] not in self.parts:
            return None
        layer = f"{self.layers}.{match[1]}." if match[1] is not None else ""
        end = "" if match[2] in self.bare else f".{match[3]}"
        return f"{layer}{self.parts[match[2]]}{end}"

    def expert_names(self, name: str, count: int) -> list[str]:
        """Hugging Face's name of the tensor of each expert; none where it is not one of all experts."""
        match = _NAME.fullmatch(name)
        if not match or match[2] not in self.experts or match[1] is None:
            return []
        part = f"{self.layers}.{match[1]}.{self.experts[match[2]]}.{match[3]}"
        return [part.format(expert) for expert in range(count)]

    def is_transposed(self, name: str) -> bool:
        """True if Hugging Face keeps this matrix (its name) with inputs as rows, where GGUF has outputs as rows."""
        return name.endswith(".weight") and any(name.endswith(f".{part}.weight") for part in self.transposed)

    def heads_paired(self, name: str, config: Mapping[str, Any]) -> int | None:
        """Number of heads that this tensor's rows belong to, where they are ordered for rope on neighbouring pairs."""
        if not self.paired_heads:
            return None
        if ".self_attn.q_proj." in name:
            return int(config["num_attention_heads"])
        return int(config["num_key_value_heads"]) if ".self_attn.k_proj." in name else None


def known() -> dict[str, GGUFNames]:
    """The architectures of GGUF files by their names there: asked of the language models, which bring them."""
    names: dict[str, GGUFNames] = import_module("pygpukit.llm.models").GGUF_NAMES
    return names
