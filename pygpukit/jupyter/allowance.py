"""The allowance of one page's messages: enough for fingers and windows, and no flood."""

from __future__ import annotations

import time

BURST = 64  # messages that are taken at once
PER_S = 32.0  # and in the long run: more than fingers press and windows are turned to


class Allowance:
    """The messages that one page may still send. Each costs the kernel an answer, or the whole state."""

    def __init__(self) -> None:
        self._left = float(BURST)
        self._asked_at = time.monotonic()

    def take(self) -> bool:
        """Take one message; False in a flood, which is to be dropped and counted."""
        now = time.monotonic()
        self._left = min(self._left + PER_S * (now - self._asked_at), BURST)
        self._asked_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
