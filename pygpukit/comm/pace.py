"""Pace: threads of ranks that launch side by side, so that no device waits long for the other's part."""

from __future__ import annotations

import threading
from collections.abc import Iterator

_PATIENCE_S = 2e-3  # a thread that loads code waits for kernels that wait for what the others have yet to launch


class Pace:
    """The interpreter gives a thread 5 ms before the next one has a turn; launches of several layers. size: ranks."""

    def __init__(self, size: int) -> None:
        self._done: list[float] = [0] * size
        self._changed = threading.Condition()

    def walk(self, rank: int, work: Iterator[object]) -> None:
        """Go through a rank's work: a piece once all others have done as many, or have had some time to."""
        try:
            for _ in work:
                with self._changed:
                    self._done[rank] += 1
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: min(self._done) >= self._done[rank], _PATIENCE_S)
        finally:
            with self._changed:
                self._done[rank] = float("inf")
                self._changed.notify_all()
