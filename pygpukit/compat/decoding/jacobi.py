"""DecodeJacobi: several next tokens guessed at once, and computed again with what the model chose until they stay."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, get_args

from pygpukit.compat.decoding.buffers import DecodeBuffers, fill
from pygpukit.compat.decoding.strategy import DecodeStrategy
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.sizes import whole
from pygpukit.llm.drafts.ngram import NGrams
from pygpukit.llm.drafts.speculation import MAX_TOKENS
from pygpukit.llm.engine.drafting import right_count

if TYPE_CHECKING:
    from pygpukit.array.array import GPUArray
    from pygpukit.compat.decoding.hand import Hand

Guess = Literal["repeat", "ngram", "greedy"]


class DecodeJacobi(DecodeStrategy):
    """Fixed-point iteration over the next n_tokens tokens, 1 to 16, at most max_iter times a step.

    init_strategy: the first guess repeats the token ("repeat"), is what came last after the tokens that the text ends
    with ("ngram"), or what steps of one token choose ("greedy"). Tokens are those of plain decoding, whatever was
    guessed.
    """

    def __init__(self, n_tokens: int = 8, max_iter: int = 3, init_strategy: Guess = "repeat") -> None:
        for name, value, longest in (("n_tokens", n_tokens, MAX_TOKENS), ("max_iter", max_iter, 1 << 20)):
            expected = f"a whole number of 1 to {longest}"
            if not 1 <= whole(value, name, expected) <= longest:
                raise InvalidSpecError(f"{name}={value!r}; give {expected}", name)
        if init_strategy not in get_args(Guess):
            names = ", ".join(map(repr, get_args(Guess)))
            raise InvalidSpecError(f"init_strategy={init_strategy!r}; give one of {names}", "init_strategy")
        self._n_tokens, self._max_iter = operator.index(n_tokens), operator.index(max_iter)
        self._init_strategy = init_strategy

    @property
    def n_tokens(self) -> int:
        """Tokens that are computed together."""
        return self._n_tokens

    @property
    def max_iter(self) -> int:
        """Iterations of a step, at most."""
        return self._max_iter

    @property
    def init_strategy(self) -> str:
        """The kind of the first guess."""
        return self._init_strategy

    def step(self, token_id: int, position: int, context_len: int, buffers: DecodeBuffers | None) -> GPUArray:
        """One token without a guess, as DecodeStrategy.step()."""
        hand = self._begin(token_id, position, context_len)
        hand.step()
        return fill(buffers, hand, [token_id], position)

    def step_jacobi(self, token_id: int, position: int, context_len: int) -> tuple[list[int], int, dict[str, Any]]:
        """The tokens that follow a token, one or more; the position of the last of them, which comes next; and
        {"iterations", "converged", "accepted_count"}. Raises as step()."""
        hand = self._begin(token_id, position, context_len)
        drafts = self._guess(hand, token_id, position)
        iterations, right, chosen = 0, -1, list[int]()
        while iterations < self._max_iter and right < len(drafts):
            if iterations:
                drafts = chosen[: len(drafts)]  # the next iteration begins with what this one chose
            chosen = hand.step(drafts)
            right = right_count(drafts, chosen)
            iterations += 1
        hand.keep(drafts[:right])
        tokens = chosen[: right + 1]
        converged = right == len(drafts)
        figures = {"iterations": iterations, "converged": converged, "accepted_count": len(tokens)}
        return tokens, position + len(tokens), figures

    def step_lookahead(self, token_id: int) -> tuple[list[int], dict[str, Any]]:
        """step_jacobi() behind the confirmed positions, which those of the accepted tokens then are."""
        position = self.model.get_lookahead_confirmed_pos()
        self.model.reset_lookahead_all()
        tokens, _, figures = self.step_jacobi(token_id, position, position + 1)
        self.model.commit_lookahead_all(len(tokens))
        return tokens, figures

    def _guess(self, hand: Hand, token: int, position: int) -> list[int]:
        """The tokens behind the first, as far as there is room."""
        count = hand.room(self._n_tokens - 1)
        if self._init_strategy == "greedy":
            guess, following = list[int](), token
            for place in range(position, position + count):
                hand.begin(following, place, self._sampling)
                [following] = hand.step()
                guess.append(following)
            hand.begin(token, position, self._sampling)
            return guess
        guess = hand.propose(NGrams(), count) if self._init_strategy == "ngram" else []
        return guess + [guess[-1] if guess else token] * (count - len(guess))
