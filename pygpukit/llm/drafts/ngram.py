"""NGrams: drafts from the text so far: what came last after the tokens that it ends with."""

from __future__ import annotations

from array import array
from collections.abc import Sequence as Several
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygpukit.llm.engine.drafting import Asked
    from pygpukit.llm.engine.sequence import Sequence

LONGEST, SHORTEST = 4, 2  # tokens that must be the same; of several lengths the longest that is at
WINDOW = 1 << 15  # tokens that are looked through


class NGrams:
    """Of one sequence: the tokens of prompt and answer, as bytes that are searched."""

    def __init__(self) -> None:
        self._tokens = array("i")

    def propose(self, asked: Several[Asked]) -> list[list[int]]:
        """Tokens that followed the last time; none where nothing like it was there before."""
        return [self._proposal(one) for one in asked]

    def learn(self, sequence: Sequence, drafts: Several[int], chosen: Several[int]) -> None:
        """Nothing: the text is what it goes by."""

    def _proposal(self, asked: Asked) -> list[int]:
        tokens, sequence = self._tokens, asked.sequence
        if not tokens:
            tokens.extend(sequence.prompt)
        tokens.extend(sequence.answer[len(tokens) - len(sequence.prompt) :])
        recent = tokens[-WINDOW:]
        text, size = recent.tobytes(), recent.itemsize
        for count in range(min(LONGEST, len(recent) - 1), SHORTEST - 1, -1):
            pattern = text[-count * size :]
            at = text.rfind(pattern, 0, len(text) - size)
            while at % size and at >= 0:  # between two tokens
                at = text.rfind(pattern, 0, at + len(pattern) - 1)
            if at >= 0:
                return _following(recent, at // size + count, asked.room)
        return []


def _following(tokens: Several[int], begin: int, count: int) -> list[int]:
    """Tokens from there on; where they come to the end they go on as they began: a text that repeats itself."""
    period = len(tokens) - begin
    return [tokens[begin + index % period] for index in range(count)]
