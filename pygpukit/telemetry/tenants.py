"""Who works on the device: tasks of every scheduler and contexts of models. Nothing of them is imported for that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pygpukit import _core

if TYPE_CHECKING:
    from pygpukit.scheduler.contexts import ContextRecord

# Each task with the label of its scheduler.
TaskSource = Callable[[], Sequence[tuple[str, _core.TaskRecord]]]


def all_tasks() -> list[tuple[str, _core.TaskRecord]]:
    """The tasks of every live scheduler; none while nothing has imported the scheduler."""
    module = sys.modules.get("pygpukit.scheduler")
    schedulers = [] if module is None else module.all_schedulers()
    return [(one.label, task) for one in schedulers for task in one.core.tasks()]


def unstarted() -> set[str]:
    """The labels of schedulers that have no dispatcher threads."""
    module = sys.modules.get("pygpukit.scheduler")
    schedulers = [] if module is None else module.all_schedulers()
    return {one.label for one in schedulers if not (one.started or one.closed)}


def cores() -> Sequence[_core.SchedulerCore]:
    """The core of every live scheduler."""
    module = sys.modules.get("pygpukit.scheduler")
    return [] if module is None else module.live_cores()


def contexts() -> Sequence[ContextRecord]:
    """Contexts of models, and the last that ended."""
    module = sys.modules.get("pygpukit.scheduler")
    return [] if module is None else module.context_records()


def adjustments() -> int:
    """Grows when a priority, a share or a partition was changed, or a task paused or resumed."""
    module = sys.modules.get("pygpukit.scheduler")
    return 0 if module is None else module.adjustments()
