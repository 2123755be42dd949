"""Which tokens may come next: those that are never wanted, and the order that timestamps keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from pygpukit.asr.tokens import WhisperTokens

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rules:
    """Rules of one transcript. never, not_first: tokens; latest_start: the last timestamp token that may come first,
    None for transcripts without timestamps."""

    eot: int
    no_timestamps: int
    never: tuple[int, ...] = ()
    not_first: tuple[int, ...] = ()
    latest_start: int | None = None

    @classmethod
    def of(
        cls, tokens: WhisperTokens, never: Sequence[int], not_first: Sequence[int], latest_start: int | None
    ) -> Rules:
        """Those of a model's tokens; latest_start counts steps of 0.02 s."""
        latest = None if latest_start is None else tokens.first_time + latest_start
        unwanted = tuple(sorted({*never, *tokens.special}))
        return cls(tokens.eot, tokens.no_timestamps, unwanted, tuple(not_first), latest)

    @property
    def banned(self) -> tuple[int, ...]:
        """Tokens that never come."""
        return self.never if self.latest_start is None else (*self.never, self.no_timestamps)

    def log_probabilities(self, logits: Array, said: Sequence[int]) -> Array:
        """float32 logs of the probabilities of the next token after `said`, -inf for tokens that may not come."""
        import numpy as np

        values = logits.astype(np.float32)
        values[np.isnan(values)] = -np.inf
        values[list(self.banned)] = -np.inf
        if not said:
            values[list(self.not_first)] = -np.inf
        text, text_end, time, end, either = self.limits(said, values.size)
        for some in (slice(0, text), slice(text_end, time), slice(end, None)):
            values[some] = -np.inf
        logs = _log_softmax(values)
        if either and _log_sum(logs[text_end:]) > logs[:text_end].max():
            # Together the timestamps are more probable than any other token: so one of them it is.
            values[:text_end] = -np.inf
            logs = _log_softmax(values)
        return logs

    def most_probable(self, logits: Array, said: Sequence[int]) -> tuple[int, float]:
        """The token with the largest of log_probabilities(), the first of equal ones, and that; (-1, -inf) for none."""
        logs = self.log_probabilities(logits, said)
        token = int(logs.argmax())
        return (token, float(logs[token])) if logs[token] > float("-inf") else (-1, float("-inf"))

    def limits(self, said: Sequence[int], vocab: int) -> tuple[int, int, int, int, bool]:
        """(text, its end, time, its end): the ranges of tokens that may come, for timestamps come in pairs and do not
        go back; and whether the model may choose between the two."""
        if self.latest_start is None:
            return 0, vocab, vocab, vocab, False
        first_time = self.no_timestamps + 1
        if not said:
            return 0, 0, first_time, min(self.latest_start + 1, vocab), False
        last = next((token for token in reversed(said) if token >= first_time), first_time)
        if said[-1] < first_time:
            return 0, first_time, last, vocab, True
        if len(said) < 2 or said[-2] >= first_time:
            return 0, first_time, vocab, vocab, False
        return self.eot, first_time, last, vocab, False


def _log_softmax(values: Array) -> Array:
    import numpy as np

    total = np.float32(_log_sum(values))
    return values - total if total > -np.inf else values


def _log_sum(values: Array) -> float:
    import numpy as np

    largest = values.max()
    if largest == -np.inf:
        return -np.inf
    return float(largest + np.log(np.exp(values - largest).sum(dtype=np.float64)))
