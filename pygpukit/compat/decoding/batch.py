"""DecodeBatch: several tokens that follow each other in one step."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pygpukit.compat.decoding.buffers import DecodeBuffers, check_room, fill
from pygpukit.compat.decoding.strategy import DecodeStrategy
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.compat.decoding.hand import Hand

MAX_ROWS = 64


class DecodeBatch(DecodeStrategy):
    """Up to batch_size tokens a step, 1 to 64, each of which sees those before it."""

    def __init__(self, batch_size: int = 8) -> None:
        expected = f"a whole number of 1 to {MAX_ROWS}"
        if not 1 <= whole(batch_size, "batch_size", expected) <= MAX_ROWS:
            raise InvalidSpecError(f"batch_size={batch_size!r}; give {expected}", "batch_size")
        self._batch_size = operator.index(batch_size)
        self._captured_by: Hand | None = None
        self._buffers: DecodeBuffers | None = None

    @property
    def batch_size(self) -> int:
        """Tokens of a step, at most."""
        return self._batch_size

    @property
    def buffers(self) -> DecodeBuffers | None:
        """Results of steps: hidden_batch, logits_batch, tokens and position; None before init_graph()."""
        return self._buffers

    def step(self, token_id: int, position: int, context_len: int, buffers: DecodeBuffers | None) -> GPUArray:
        """step_batch() of one token."""
        return self.step_batch([token_id], position, context_len, buffers)

    def step_batch(
        self, token_ids: Sequence[int], start_position: int, context_len: int, buffers: DecodeBuffers | None
    ) -> GPUArray:
        """The last layer's output, float32 (tokens, hidden), for tokens from a position on, until the next step.

        context_len: start_position + len(token_ids). Raises InvalidSpecError for more tokens than batch_size, or none,
        and as DecodeStrategy.step().
        """
        check_room(buffers, len(token_ids))
        hand = self._stepped(token_ids, start_position, context_len, graphs=False)
        return fill(buffers, hand, token_ids, start_position)

    def init_graph(self, max_seq_len: int = 512) -> None:
        """Capture the step of batch_size tokens; see DecodeStrategy.init_graph()."""
        self._captured_by = self._captured(self._batch_size, max_seq_len)
        self._buffers = DecodeBuffers.of(self.model, self._batch_size)

    def has_graph(self) -> bool:
        """True after init_graph(), as long as the layers have the fixed caches that it was captured with."""
        return self._captured_by is not None and self._captured_by is self._hand

    def step_graph(self, token_ids: Sequence[int], start_position: int, context_len: int) -> GPUArray:
        """The logits, float32 (batch_size, vocabulary), behind each of batch_size tokens, by the graph.

        Raises InvalidSpecError before init_graph(), for another number of tokens, and as step_batch().
        """
        if not self.has_graph():
            raise InvalidSpecError("DecodeBatch has no graph; call init_graph() first", "max_seq_len")
        if len(token_ids) != self._batch_size:
            raise InvalidSpecError(
                f"token_ids has {len(token_ids)} tokens, the graph {self._batch_size}; give as many, or call "
                "step_batch()",
                "token_ids",
            )
        hand = self._stepped(token_ids, start_position, context_len, graphs=True)
        fill(self._buffers, hand, token_ids, start_position)
        return hand.logits(self._batch_size)

    def _stepped(self, tokens: Sequence[int], position: int, context_len: int, *, graphs: bool) -> Hand:
        if not 1 <= len(tokens) <= self._batch_size:
            raise InvalidSpecError(f"token_ids has {len(tokens)} tokens; give 1 to {self._batch_size}", "token_ids")
        hand = self._begin(tokens[0], position, context_len, len(tokens))
        hand.step(tokens[1:], graphs=graphs)
        hand.keep(tokens[1:])
        return hand
