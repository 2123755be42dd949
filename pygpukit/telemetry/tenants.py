"""Who works on the device: tasks of every scheduler, contexts and answers of models. Nothing of them is imported for
that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pygpukit import _core

if TYPE_CHECKING:
    from pygpukit.scheduler import Scheduler
    from pygpukit.scheduler.contexts import ContextRecord

# Each task with the label of its scheduler.
TaskSource = Callable[[], Sequence[tuple[str, _core.TaskRecord]]]


def _of_scheduler(name: str) -> Callable[[], Any]:
    """A function of pygpukit.scheduler. One of nothing, while nobody has imported that: also while another thread is at
    it, when the module is there and has not all of its names."""
    return getattr(sys.modules.get("pygpukit.scheduler"), name, tuple)


def schedulers() -> Sequence[Scheduler]:
    """Every live scheduler."""
    return _of_scheduler("all_schedulers")()


def all_tasks() -> list[tuple[str, _core.TaskRecord]]:
    """The tasks of every live scheduler."""
    return [(one.label, task) for one in schedulers() for task in one.core.tasks()]


def unstarted() -> set[str]:
    """The labels of schedulers that have no dispatcher threads."""
    return {one.label for one in schedulers() if not (one.started or one.closed)}


def cores() -> Sequence[_core.SchedulerCore]:
    """The core of every live scheduler."""
    return _of_scheduler("live_cores")()


def contexts() -> Sequence[ContextRecord]:
    """Contexts of models, and the last that ended."""
    return _of_scheduler("context_records")()


def caches() -> list[dict[str, Any]]:
    """Who has how many blocks of the KV caches of models."""
    return getattr(sys.modules.get("pygpukit.llm.engine.holdings"), "rows", list)()


def adjustments() -> int:
    """Grows when a priority, a share or a partition was changed, or a task paused or resumed."""
    return _of_scheduler("adjustments")() or 0
