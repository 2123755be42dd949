"""The device time of each tenant, second by second: recorded by the sampler with and without subscribers."""

from __future__ import annotations

import threading
from collections import Counter, deque

from pygpukit import _core
from pygpukit.telemetry import tenants
from pygpukit.telemetry.cell_figures import measure_devices

KEPT_ROWS = 600  # seconds
_GAP_NS = 3_000_000_000  # nobody noted anything: the sampler did not run
_SHORTEST_NS = 50_000_000
_MAX_TENANTS = 64  # in a row, those that had most

Row = tuple[
    int, int, list[tuple[str, int]]
]  # end and length in ns, then device time in ns of each tenant that had some


class Past:
    """The newest rows, oldest first. Thread-safe: the sampler notes, and whoever begins to look."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque(maxlen=KEPT_ROWS)
        self._lock = threading.Lock()
        self._noted_ns = 0
        self._task_ns = 0
        self._tasks: dict[int, int] = {}  # device time so far, by number
        self._contexts: dict[int, int] = {}

    def note(self) -> None:
        """A row for the time since the last one. Costs little where no task had device time."""
        with self._lock:
            now_ns = _core.now_ns()
            span_ns = now_ns - self._noted_ns
            if span_ns < _SHORTEST_NS:
                return
            had = self._since()
            if span_ns <= _GAP_NS:
                self._rows.append((now_ns, span_ns, had.most_common(_MAX_TENANTS)))
            self._noted_ns = now_ns

    def rows(self) -> list[Row]:
        """The rows up to now."""
        self.note()
        with self._lock:
            return list(self._rows)

    def _since(self) -> Counter[str]:
        """Device time by tenant since the last call."""
        had: Counter[str] = Counter()
        measure_devices()
        task_ns = _core.counters()["task_ns"]
        if task_ns != self._task_ns:
            self._task_ns = task_ns
            before, self._tasks = self._tasks, {}
            for _, task in tenants.all_tasks():
                if task.gpu_ns:
                    self._tasks[task.number] = task.gpu_ns
                    # What a task had before anything was noted is of no known time; since then, all that had some are.
                    known = before.get(task.number, 0 if self._noted_ns else task.gpu_ns)
                    had[task.name] += task.gpu_ns - known
        before, self._contexts = self._contexts, {}
        for context in tenants.contexts():
            self._contexts[context.number] = context.gpu_ns
            known = before.get(context.number, 0 if context.created_ns >= self._noted_ns else context.gpu_ns)
            had[context.name] += context.gpu_ns - known
        return +had


past = Past()
