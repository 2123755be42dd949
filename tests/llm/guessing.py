"""A source of drafts that are right as often as it is told, for tests: it knows the answers."""

from __future__ import annotations

import random
from collections.abc import Sequence as Several

from pygpukit.llm.engine.drafting import Asked, Drafting
from pygpukit.llm.engine.gain import Gain
from pygpukit.llm.engine.sequence import Sequence


class Oracle:
    """Proposes the next tokens of an answer, each right with a probability. learned: steps that it was told of."""

    def __init__(self, answer: list[int], acceptance: float, seed: int, vocabulary: int) -> None:
        self._answer, self._acceptance, self._vocabulary = answer, acceptance, vocabulary
        self._random = random.Random(seed)
        self.learned = 0

    def propose(self, asked: Several[Asked]) -> list[list[int]]:
        [one] = asked
        begin = len(one.sequence.answer)
        return [[self._draft(token) for token in self._answer[begin : begin + one.room]]]

    def learn(self, sequence: Sequence, drafts: Several[int], chosen: Several[int]) -> None:
        assert len(chosen) == len(drafts) + 1
        self.learned += 1

    def _draft(self, token: int) -> int:
        if self._random.random() < self._acceptance:
            return token
        return (token + self._random.randrange(1, self._vocabulary)) % self._vocabulary


def drafting(
    answer: list[int], acceptance: float, seed: int = 0, count: int = 4, vocabulary: int = 99, always: bool = True
) -> Drafting:
    """Drafts of a sequence that are tried in every step, or while they pay."""
    return Drafting(Oracle(answer, acceptance, seed, vocabulary), Gain(count, always))
