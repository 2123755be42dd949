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

    def log_probabilities(self, logits: Array, said: Sequence[int]) -> Array:
        """float32 logs of the probabilities of the next token after `said`, -inf for tokens that may not come."""
        import numpy as np

        values = logits.astype(np.float32)
        values[np.isnan(values)] = -np.inf
        values[list(self.never)] = -np.inf
        if not said:
            values[list(self.not_first)] = -np.inf
        if self.latest_start is None:
            return _log_softmax(values)
        first_time = self.no_timestamps + 1
        values[self.no_timestamps] = -np.inf
        may_be_text = self._keep_order(values, said)
        logs = _log_softmax(values)
        if may_be_text and _log_sum(logs[first_time:]) > logs[:first_time].max():
            # Together the timestamps are more probable than any other token: so one of them it is.
            values[:first_time] = -np.inf
            logs = _log_softmax(values)
        return logs

    def _keep_order(self, values: Array, said: Sequence[int]) -> bool:
        """Timestamps come in pairs and do not go back. False where there is no choice between them and others."""
        import numpy as np

        first_time = self.no_timestamps + 1
        if not said:
            values[:first_time] = -np.inf
            values[int(self.latest_start or 0) + 1 :] = -np.inf
            return False
        last = next((token for token in reversed(said) if token >= first_time), None)
        if last is not None:
            values[first_time:last] = -np.inf
        if said[-1] < first_time:
            return True
        if len(said) < 2 or said[-2] >= first_time:
            values[first_time:] = -np.inf
            return False
        values[: self.eot] = -np.inf
        return True


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
