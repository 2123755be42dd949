"""Sequence: a prompt, the tokens chosen after it, and where its keys and values are."""

from __future__ import annotations

from dataclasses import dataclass, field

from pygpukit.llm.engine.sampling import Sampling
from pygpukit.nn.kv_cache import Slot


@dataclass(eq=False)
class Sequence:
    """One sequence on an engine.

    slot: its place in the KV cache. cached: tokens of the prompt whose keys and values were there already.
    """

    prompt: list[int]
    sampling: Sampling
    slot: Slot
    cached: int = 0
    answer: list[int] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Tokens so far; the last one sampled is not in the cache yet."""
        return len(self.prompt) + len(self.answer)
