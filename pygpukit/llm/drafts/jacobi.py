"""Jacobi and Lookahead: drafts from what the model itself chose in earlier steps behind drafts that were wrong."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence as Several
from typing import TYPE_CHECKING

from pygpukit.llm.engine.drafting import right_count

if TYPE_CHECKING:
    from pygpukit.llm.engine.drafting import Asked
    from pygpukit.llm.engine.sequence import Sequence

CONTEXT = 2  # tokens that a choice is remembered by; the last alone where no two are
KEPT = 1 << 14  # choices that are remembered


class Jacobi:
    """Of one sequence: fixed-point iteration. Positions behind a wrong draft are guessed as the model chose them in the
    last step, though it did so behind that draft; the rest repeat the last guess."""

    def __init__(self) -> None:
        self._guess: list[int] = []

    def propose(self, asked: Several[Asked]) -> list[list[int]]:
        """The last step's choices, and more like them."""
        proposals = []
        for one in asked:
            sequence = one.sequence
            guess = self._guess[: one.room] or [sequence.token_at(sequence.known - 1)]
            proposals.append(guess + [guess[-1]] * (one.room - len(guess)))
        return proposals

    def learn(self, sequence: Sequence, drafts: Several[int], chosen: Several[int]) -> None:
        """Keep the choices behind the first that corrects a draft."""
        self._guess = list(chosen[right_count(drafts, chosen) + 1 :])


class Lookahead:
    """Of one sequence: a pool of what the model chose behind which tokens, in answers and behind wrong drafts alike;
    drafts follow from token to token in it, and are Jacobi's where it has none."""

    def __init__(self) -> None:
        self._jacobi = Jacobi()
        self._pool: OrderedDict[tuple[int, ...], int] = OrderedDict()

    def propose(self, asked: Several[Asked]) -> list[list[int]]:
        """Drafts from the pool, as far as it goes."""
        return [self._proposal(one) or self._jacobi.propose([one])[0] for one in asked]

    def learn(self, sequence: Sequence, drafts: Several[int], chosen: Several[int]) -> None:
        """Each choice, behind the tokens that it was made behind."""
        begin = sequence.known - 1 - right_count(drafts, chosen)  # of the step's own row
        past = [sequence.token_at(position) for position in range(max(begin - CONTEXT, 0), begin)]
        inputs = [*past, *drafts]
        for index, token in enumerate(chosen):
            end = len(past) + index
            for count in range(1, min(CONTEXT, end) + 1):
                key = tuple(inputs[end - count : end])
                self._pool[key] = token
                self._pool.move_to_end(key)
        while len(self._pool) > KEPT:
            self._pool.popitem(last=False)
        self._jacobi.learn(sequence, drafts, chosen)

    def _proposal(self, asked: Asked) -> list[int]:
        sequence = asked.sequence
        tokens = [sequence.token_at(i) for i in range(max(sequence.known - CONTEXT, 0), sequence.known)]
        known = len(tokens)
        while len(tokens) < known + asked.room:
            keys = (tuple(tokens[-count:]) for count in range(min(CONTEXT, len(tokens)), 0, -1))
            following = next((self._pool[key] for key in keys if key in self._pool), None)
            if following is None:
                break
            tokens.append(following)
        return tokens[known:]
