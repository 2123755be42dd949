"""DecodeSpeculative: drafts by the first layers of the model, which its own step then accepts or not."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from pygpukit.compat.decoding.buffers import DecodeBuffers, fill
from pygpukit.compat.decoding.strategy import DecodeStrategy
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.drafts.speculation import MAX_TOKENS
from pygpukit.llm.engine.drafting import right_count

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray


class DecodeSpeculative(DecodeStrategy):
    """Up to max_draft_tokens drafts a step, 1 to 16, that the first draft_layers layers choose. Tokens are those of
    plain decoding, whatever was proposed."""

    def __init__(self, max_draft_tokens: int = 4, draft_layers: int = 8) -> None:
        expected = f"a whole number of 1 to {MAX_TOKENS}"
        if not 1 <= whole(max_draft_tokens, "max_draft_tokens", expected) <= MAX_TOKENS:
            raise InvalidSpecError(f"max_draft_tokens={max_draft_tokens!r}; give {expected}", "max_draft_tokens")
        if whole(draft_layers, "draft_layers", "a whole number of 1 or more") < 1:
            raise InvalidSpecError(f"draft_layers={draft_layers!r}; give a whole number of 1 or more", "draft_layers")
        self._max_draft_tokens = operator.index(max_draft_tokens)
        self._draft_layers = operator.index(draft_layers)

    @property
    def max_draft_tokens(self) -> int:
        """Drafts of a step, at most."""
        return self._max_draft_tokens

    @property
    def draft_layers(self) -> int:
        """Layers that choose drafts."""
        return self._draft_layers

    def step(self, token_id: int, position: int, context_len: int, buffers: DecodeBuffers | None) -> GPUArray:
        """One token without drafts, as DecodeStrategy.step()."""
        hand = self._begin(token_id, position, context_len)
        hand.step()
        return fill(buffers, hand, [token_id], position)

    def step_speculative(self, token_id: int, position: int, context_len: int) -> tuple[list[int], int, dict[str, int]]:
        """The tokens that follow a token, one or more; the position of the last of them, which comes next; and
        {"draft_count", "accepted_count"}.

        Raises InvalidSpecError where the model has no more than draft_layers layers, and as step().
        """
        source = self._hand.own_layers(self._draft_layers)
        hand = self._begin(token_id, position, context_len)
        drafts = hand.propose(source, self._max_draft_tokens)
        chosen = hand.step(drafts)
        right = right_count(drafts, chosen)
        hand.keep(drafts[:right])
        return chosen[: right + 1], position + right + 1, {"draft_count": len(drafts), "accepted_count": right}

    def step_lookahead(self, token_id: int) -> tuple[list[int], dict[str, int]]:
        """step_speculative() behind the confirmed positions, which those of the accepted tokens then are."""
        position = self.model.get_lookahead_confirmed_pos()
        self.model.reset_lookahead_all()
        tokens, _, counts = self.step_speculative(token_id, position, position + 1)
        self.model.commit_lookahead_all(len(tokens))
        return tokens, counts
