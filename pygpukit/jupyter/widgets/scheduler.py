"""SchedulerWidget: live tasks by phase and over time, and launches per second."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

from pygpukit import _core
from pygpukit.jupyter.widgets.base import Dashboard
from pygpukit.jupyter.widgets.fallback import scheduler_html


class HasTasks(Protocol):
    """What the widget needs of a scheduler."""

    def tasks(self) -> Sequence[_core.TaskRecord]: ...


class SchedulerWidget(Dashboard):
    """Live tasks of every scheduler in the process: phases, lanes in time, counts, and launches per second.

    The view begins with the tasks that `scheduler` already has, or with those of every live scheduler, and follows all
    from there. It does not keep the scheduler alive. Show the widget as the value of a cell; it goes on while other
    cells run. Raises TypeError for a scheduler without `tasks()`, and RuntimeError when the front-end bundle has not
    been built.
    """

    module = "scheduler.js"

    def __init__(self, scheduler: HasTasks | None = None) -> None:
        if scheduler is not None and not callable(getattr(scheduler, "tasks", None)):
            raise TypeError(f"scheduler is a {type(scheduler).__name__}; it must be a Scheduler or None")
        self._scheduler = None if scheduler is None else weakref.ref(scheduler)
        super().__init__()

    def fallback_html(self) -> str:
        return scheduler_html(self.device_label, self._records(), _core.counters())

    def snapshot_tasks(self) -> list[dict[str, Any]]:
        return [
            {
                "number": task.number,
                "name": task.name,
                "phase": task.phase,
                "submittedNs": task.submitted_ns,
                "startedNs": task.started_ns,
                "finishedNs": task.finished_ns,
            }
            for task in self._records()
        ]

    def _records(self) -> list[_core.TaskRecord]:
        if self._scheduler is None:
            module = sys.modules.get("pygpukit.scheduler")  # not imported: there is no scheduler yet
            sources = module.live_cores() if module is not None else []
        else:
            held = self._scheduler()
            sources = [] if held is None else [held]
        return [task for source in sources for task in source.tasks()]
