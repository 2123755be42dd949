"""Waiting for memory that somebody else lets go of."""

from __future__ import annotations

import gc
import time

from pygpukit import _core

PATIENCE_S = 60


def comes_to_use(expected: int) -> bool:
    """Whether the pool is left with so many bytes or fewer: who gave a task its outcome may hold it a moment longer."""
    until = time.monotonic() + PATIENCE_S
    while gc.collect() >= 0 and _core.pool_stats().used > expected:
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
