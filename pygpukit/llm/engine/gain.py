"""Gain: whether drafts pay for one answer, by the tokens and the time of its steps with and without them."""

from __future__ import annotations

from collections import deque
from statistics import median

_GRANT = 2.0  # steps without drafts that drafts may cost an answer at first
_SHARE = 0.01  # and of each step without drafts that follows
_PLAIN = 3  # steps without drafts to compare with: at first, and after so many with them
_GOOD = 128
_KEPT = 8  # steps with drafts that are remembered; of those without about as many as make a comparison


class Gain:
    """Decides for an answer how many drafts its next step tries: `drafts`, none while they do not pay.

    What drafts cost is counted in steps without drafts. They may cost a few of them at first and a small share of those
    that follow, and what they gain is theirs to lose again, up to what a trial costs: so an answer whose drafts are
    never right takes hardly longer than one without, however much a step with drafts and the drafts themselves cost.
    always: drafts are tried in any case. It changes when tokens come, and no token.
    """

    def __init__(self, count: int, always: bool = False) -> None:
        self._count, self._always = count, always
        self._with, self._without = deque[float](maxlen=_KEPT), deque[float](maxlen=2 * _PLAIN - 1)
        self._drafting, self._steps = False, 0  # steps of this kind since the last of the other one
        self._left = _GRANT  # what drafts may cost from now on
        self._pausing = False  # until a trial can be paid
        self._excused = False  # a step with drafts that took long was left out

    @property
    def drafts(self) -> int:
        """Drafts for the next step."""
        return self._count if self._drafting or self._always else 0

    def note(self, drafting: bool, tokens: int, seconds: float) -> None:
        """A step ended that gave so many tokens. drafting: it was to try drafts. One of the other kind than expected,
        which was begun before, is remembered and counts for no comparison."""
        if self._always:
            return
        if drafting:
            self._with_drafts(tokens, seconds)
        else:
            self._without.append(seconds)
            self._left = min(self._left + _SHARE, self._limit)
        self._steps += drafting == self._drafting
        expected = self._expected()
        if expected != self._drafting:
            self._drafting, self._steps = expected, 0

    def _with_drafts(self, tokens: int, seconds: float) -> None:
        cost = self._cost(seconds)
        one_by_one = self._count + 1
        if cost > one_by_one and not self._excused:
            self._excused = True  # it may have captured its graph, which is done once
            return
        self._with.append(seconds)
        # A step that took longer than its tokens one by one and than others was held up by something else.
        cost = min(cost, max(one_by_one, 1 + self._extra))
        self._left = min(self._left + tokens - cost, self._limit)

    def _expected(self) -> bool:
        """True if the next step is to try drafts."""
        if self._drafting:
            self._pausing = self._left < self._extra
            return not self._pausing and self._steps < _GOOD
        return self._steps >= _PLAIN and self._left >= (self._limit if self._pausing else self._extra)

    def _cost(self, seconds: float) -> float:
        """So many steps without drafts take as long; one by a clock that stands still."""
        return seconds / (median(self._without) or seconds or 1.0)

    @property
    def _extra(self) -> float:
        """Cost of a step with drafts beyond one without, none of them right."""
        return max(self._cost(median(self._with)) - 1, 0.0) if self._with else 0.0

    @property
    def _limit(self) -> float:
        """Cost that drafts may have at a time: of a few cheap steps with them, or of two."""
        return max(_GRANT, 2 * self._extra)
