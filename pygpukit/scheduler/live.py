"""Every scheduler of the process, for dashboards, for its end, and for a forked child."""

from __future__ import annotations

import atexit
import itertools
import os
import weakref
from typing import TYPE_CHECKING

from pygpukit import _core
from pygpukit.core import recording

if TYPE_CHECKING:
    from pygpukit.scheduler.scheduler import Scheduler

_EXIT_PATIENCE_S = 1.0

_live: weakref.WeakValueDictionary[int, Scheduler] = weakref.WeakValueDictionary()
_adjustments = 0
_numbers = itertools.count(1)


def add(scheduler: Scheduler) -> str:
    """Held weakly. Its label in dashboards, which no other scheduler of the process has: "scheduler 2"."""
    _live[id(scheduler)] = scheduler
    recording.begin()
    return f"scheduler {next(_numbers)}"


def all_schedulers() -> list[Scheduler]:
    """Every scheduler of the process that something still holds, oldest first."""
    return list(_live.values())


def live_cores() -> list[_core.SchedulerCore]:
    """Their cores: for dashboards, which read records and device times and call nothing else."""
    return [scheduler.core for scheduler in all_schedulers()]


def adjusted() -> None:
    """Something was changed that adjustments() counts."""
    global _adjustments
    _adjustments += 1


def adjustments() -> int:
    """Number of changes of a priority, a share or a partition so far, or a task paused or resumed, in whichever
    scheduler."""
    return _adjustments


@atexit.register
def _shut_all() -> None:
    """A thread that comes back from the core into an interpreter that is going down would not survive it."""
    for scheduler in all_schedulers():
        scheduler._shut(_EXIT_PATIENCE_S)


def _forget_in_child() -> None:
    for scheduler in all_schedulers():
        scheduler._disown()
    _live.clear()  # what is left to do at the end is the parent's


os.register_at_fork(after_in_child=_forget_in_child)
