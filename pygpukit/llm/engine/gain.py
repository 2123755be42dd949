"""Gain: whether drafts pay for one answer, by the tokens and the time of its steps with and without them."""

from __future__ import annotations

from collections import deque
from statistics import median

_TRIAL, _BARREN = 8, 4  # steps of a trial; so many without an accepted draft end it
_PLAIN = 4  # steps without drafts to compare with
_GOOD = 64  # steps with drafts after a trial that paid
_PAUSE, _LONGEST = 64, 1024  # steps without them after one that did not; twice as many each time
_KEPT = 16  # steps of either kind that are remembered


class _Steps:
    """Tokens and seconds of the last steps of a kind."""

    def __init__(self) -> None:
        self.tokens = deque[int](maxlen=_KEPT)
        self.seconds = deque[float](maxlen=_KEPT)

    def note(self, tokens: int, seconds: float) -> None:
        self.tokens.append(tokens)
        self.seconds.append(seconds)

    @property
    def mean(self) -> float:
        return sum(self.tokens) / len(self.tokens)


class Gain:
    """Decides for an answer how many drafts its next step tries: `count`, or none while they do not pay.

    Drafts are tried first; then some steps go without, and whichever gave more tokens a second goes on. The other is
    looked at again now and then, rarely where it lost often. always: drafts are tried in any case. It changes when
    tokens come, and no token.
    """

    def __init__(self, count: int, always: bool = False) -> None:
        self._count, self._always = count, always
        self._with, self._without = _Steps(), _Steps()
        self._left, self._drafting, self._trying = _TRIAL, True, True
        self._pause = _PAUSE
        self._barren = 0

    @property
    def drafts(self) -> int:
        """Drafts for the next step."""
        return self._count if self._drafting or self._always else 0

    @property
    def pays(self) -> bool | None:
        """True if drafts gave more tokens a second than steps without; None before both were seen."""
        if not self._with.tokens or not self._without.tokens:
            return None
        return self._with.mean * median(self._without.seconds) >= self._without.mean * median(self._with.seconds)

    def note(self, drafting: bool, tokens: int, seconds: float) -> None:
        """A step ended that gave so many tokens. drafting: it was to try drafts. One of the other kind than wanted,
        which was begun before, is remembered and does not count."""
        (self._with if drafting else self._without).note(tokens, seconds)
        if self._always or drafting != self._drafting:
            return
        self._barren = 0 if tokens > 1 or not drafting else self._barren + 1
        self._left -= 1
        if drafting and self._trying and self._barren >= _BARREN:
            self._stop()
        elif self._left <= 0:
            self._turn()

    def _turn(self) -> None:
        """The stint is over: steps of the other kind to compare with, or whichever pays."""
        if self._drafting:  # a trial, or a good time, is followed by some steps without
            self._drafting, self._trying, self._left = False, True, _PLAIN
        elif not self._trying:  # a pause is over
            self._drafting, self._trying, self._left, self._barren = True, True, _TRIAL, 0
        elif self.pays:
            self._drafting, self._trying, self._left, self._pause = True, False, _GOOD, _PAUSE
        else:
            self._stop()

    def _stop(self) -> None:
        self._drafting, self._trying, self._left = False, False, self._pause
        self._pause = min(2 * self._pause, _LONGEST)
