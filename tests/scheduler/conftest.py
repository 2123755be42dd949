"""Fixtures of the tests of the scheduler."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scheduler_help import PATIENCE_S

from pygpukit.scheduler import Scheduler


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """One with 100 MB that nobody has started; what is left in it is cancelled in the end."""
    made = Scheduler(total_memory="100MB", start=False)
    yield made
    made._shut(PATIENCE_S)
