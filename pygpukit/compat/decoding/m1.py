"""DecodeM1 and DecodeM1Graph: one token a step, launched one kernel after the other, or as a captured graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygpukit.compat.decoding.buffers import DecodeBuffers, fill
from pygpukit.compat.decoding.strategy import DecodeStrategy
from pygpukit.core.errors import InvalidSpecError

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.compat.decoding.hand import Hand


class DecodeM1(DecodeStrategy):
    """One token a step, without a graph."""

    def step(self, token_id: int, position: int, context_len: int, buffers: DecodeBuffers | None) -> GPUArray:
        """As DecodeStrategy.step()."""
        hand = self._begin(token_id, position, context_len)
        hand.step(graphs=False)
        return fill(buffers, hand, [token_id], position)


class DecodeM1Graph(DecodeStrategy):
    """One token a step, by one graph for all positions."""

    def __init__(self) -> None:
        self._captured_by: Hand | None = None
        self._buffers: DecodeBuffers | None = None

    @property
    def buffers(self) -> DecodeBuffers | None:
        """Results of steps: hidden, logits, token and position; None before init_graph()."""
        return self._buffers

    def init_graph(self, max_seq_len: int = 512) -> None:
        """As DecodeStrategy.init_graph()."""
        self._captured_by = self._captured(1, max_seq_len)
        self._buffers = DecodeBuffers.of(self.model)

    def has_graph(self) -> bool:
        """True after init_graph(), as long as the layers have the fixed caches that it was captured with."""
        return self._captured_by is not None and self._captured_by is self._hand

    def step(self, token_id: int, position: int, context_len: int, buffers: DecodeBuffers | None) -> GPUArray:
        """As DecodeStrategy.step(); by the graph. Raises InvalidSpecError before init_graph()."""
        hand = self._stepped(token_id, position, context_len)
        return fill(buffers, hand, [token_id], position)

    def step_graph(self, token_id: int, position: int, context_len: int) -> GPUArray:
        """The logits, float32 (1, vocabulary), behind a token, until the next step; `buffers` gets them, too. Raises as
        step()."""
        hand = self._stepped(token_id, position, context_len)
        fill(self._buffers, hand, [token_id], position)
        return hand.logits(1)

    def _stepped(self, token_id: int, position: int, context_len: int) -> Hand:
        if not self.has_graph():
            raise InvalidSpecError("DecodeM1Graph has no graph; call init_graph() first", "max_seq_len")
        hand = self._begin(token_id, position, context_len)
        hand.step()
        return hand
