"""SchedulerWidget: live tasks by phase and over time, their shares and latencies, and controls."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Protocol

from pygpukit import _core
from pygpukit.jupyter.widgets.dashboard import Dashboard
from pygpukit.jupyter.widgets.fallback import scheduler_html
from pygpukit.jupyter.widgets.source import LiveSource, Source
from pygpukit.telemetry.tenants import all_tasks


class HasTasks(Protocol):
    """The interface of a scheduler that the widget needs."""

    def tasks(self) -> Sequence[_core.TaskRecord]: ...


class SchedulerWidget(Dashboard):
    """Live tasks of every scheduler in the process: Gantt, shares, latencies, log, launches per second.

    The view begins with the tasks that `scheduler` already has, or with those of every live scheduler, and follows all
    from there. It does not keep the scheduler alive. source: a replay, or None for this process. Raises TypeError for a
    scheduler without `tasks()`, and RuntimeError when the front-end bundle has not been built.
    """

    module = "scheduler.js"

    def __init__(self, scheduler: HasTasks | None = None, *, source: Source | None = None) -> None:
        if scheduler is not None and not callable(getattr(scheduler, "tasks", None)):
            raise TypeError(f"scheduler is a {type(scheduler).__name__}; it must be a Scheduler or None")
        self._scheduler = None if scheduler is None else weakref.ref(scheduler)
        super().__init__(source)

    def live_source(self) -> LiveSource:
        reference = self._scheduler
        if reference is None:
            return LiveSource(all_tasks)

        def tasks() -> Sequence[tuple[str, _core.TaskRecord]]:
            held = reference()
            return [] if held is None else [(getattr(held, "label", ""), task) for task in held.tasks()]

        return LiveSource(tasks)

    def fallback_html(self) -> str:
        return scheduler_html(self._source.state())
