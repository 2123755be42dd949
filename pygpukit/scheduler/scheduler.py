"""Scheduler: functions with requests in, their results out. The core decides what runs when; threads here run it."""

from __future__ import annotations

import atexit
import functools
import inspect
import math
import os
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, SupportsFloat, SupportsIndex

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.backend import ensure
from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import shares, units
from pygpukit.scheduler.desk import Desk
from pygpukit.scheduler.task import Task, TaskStats

_MAX_NAME_BYTES = 256
_EXIT_PATIENCE_S = 1.0


class Scheduler:
    """Admits functions by memory, compute share, priority and dependencies, and runs them on dispatcher threads.

    sched_tick_ms, window_ms: milliseconds, more than 0. Dispatching follows events, so the tick sets no pace; the
    window is the time over which shares are measured.
    total_memory: bytes that tasks may reserve together, as an int or "8GB"; None = the device's memory.
    workers: tasks that can run at a time. max_queue: tasks that can wait at a time; more are rejected with QueueFull.
    Raises InvalidSpecError naming the field.

    Nothing runs before start(); result(), `await task` and `with scheduler:` call it. Without it, step() runs one task
    at a time on the calling thread. Tasks of one priority are served in the order of their submission.
    """

    def __init__(
        self,
        sched_tick_ms: float = 1.0,
        window_ms: float = 10.0,
        total_memory: units.MemoryLike = None,
        *,
        workers: int = 4,
        max_queue: int = 1000,
    ) -> None:
        self.sched_tick_ms = units.parse_positive(sched_tick_ms, "sched_tick_ms")
        self.window_ms = units.parse_positive(window_ms, "window_ms")
        self.workers = units.parse_count(workers, "workers")
        queue = units.parse_count(max_queue, "max_queue")
        self.total_memory = (
            _device_memory() if total_memory is None else units.parse_memory(total_memory, "total_memory")
        )
        # Endings must be remembered for longer than it takes to read them.
        self.core = _core.SchedulerCore(self.total_memory, max_queue=queue, max_finished=max(4096, 2 * queue))
        self.closed = False
        self._desk = Desk(self.core)
        self._handles: weakref.WeakValueDictionary[str, Task] = weakref.WeakValueDictionary()
        _live[id(self)] = self
        weakref.finalize(self, self._desk.abandon).atexit = False

    # ---- in ----

    def submit(
        self,
        fn: Callable[..., Any],
        *args: Any,
        memory: units.MemoryLike = None,
        bandwidth: SupportsFloat | None = None,
        policy: units.PolicyLike = None,
        priority: SupportsIndex = 0,
        depends_on: Iterable[Task | str] | Task | str = (),
        deadline: SupportsFloat | None = None,
        task_id: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Task:
        """Submit `fn(*args, **kwargs)` and return its Task at once.

        memory: bytes, or "512MB" (powers of 1024). bandwidth: share of the device from 0 to 1.
        policy: "guaranteed", "burstable" or "best_effort"; None = burstable with a request, best effort without.
        priority: higher first. depends_on: tasks that must succeed first.
        deadline: seconds from now; a task that has not ended by then is Expired.
        task_id: an id of your own; None makes one. name: for dashboards; None = the function's.

        A well-formed task that can never be admitted comes back in phase Rejected, with reason and numbers; its
        result() raises TaskRejectedError. Raises InvalidSpecError naming the field for a malformed request or taken id.
        """
        memory_bytes, share_ppm = units.parse_memory(memory), units.parse_share(bandwidth)
        if not callable(fn) or inspect.iscoroutinefunction(fn):
            raise InvalidSpecError(f"fn={fn!r}; give a function that is not async", "fn")
        request = functools.partial(
            self.core.submit,
            os.urandom(6).hex() if task_id is None else units.parse_text(task_id, "task_id"),
            _name_of(fn) if name is None else units.parse_text(name, "name"),
            memory_bytes,
            share_ppm,
            units.parse_policy(policy, memory_bytes, share_ppm).value,
            units.parse_priority(priority),
            units.parse_ids(depends_on),
            units.parse_deadline(deadline, _core.now_ns()),
        )

        def make() -> Task:
            if task_id is not None and self.core.get(task_id) is not None:
                # The core would take an equal request for the same task, but cannot know whether the function is.
                raise InvalidSpecError(f"task_id={task_id!r} is taken; choose another", "task_id")
            record = request()
            if record.reason == "InvalidSpec":
                raise InvalidSpecError(f"{record.name}: {record.error}", record.field)
            task = self._handles[record.id] = Task(self, record, functools.partial(fn, *args, **kwargs))
            return task

        return self._desk.put(make)

    def cancel(self, task: Task | str) -> bool:
        """Cancel a task; False when it had ended before. A function under way launches nothing more.

        Raises KeyError for an unknown task.
        """
        cancelled = self.core.cancel(units.parse_id(task))
        self._desk.settle()
        return cancelled

    # ---- running ----

    def start(self) -> None:
        """Start the dispatcher threads; does nothing while they run. Raises RuntimeError on a closed scheduler."""
        if self.closed:
            raise RuntimeError("this scheduler is closed; make a new one")
        self._desk.start(self.workers)

    def stop(self) -> None:
        """Stop dispatching: tasks under way run to their end, the others wait for the next start() or step()."""
        self._desk.stop()

    def step(self) -> Task | None:
        """Run the next admitted task on the calling thread and return it; None when there is none to run now."""
        return self._desk.step()

    def close(self) -> None:
        """Let the tasks already here end, then stop for good. Where nothing was started, they are cancelled instead."""
        if self._desk.running:
            self._desk.drain()
        self._shut()

    def _shut(self, patience_s: float = math.inf) -> None:
        self.closed = True
        self._desk.shut(patience_s)

    def __enter__(self) -> Scheduler:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._shut()

    # ---- out ----

    def get_task(self, task_id: Task | str) -> Task | None:
        """The task with an id; None if it is unknown or ended long ago.

        Results live as long as the object that submit() returned: when that is gone, result() of this one says so.
        """
        wanted = units.parse_id(task_id)
        record = self.core.get(wanted)
        task = self._handles.get(wanted)
        if task is None and record is not None:
            task = Task(self, record, None)
            task._settle_without_value(record)
        return task

    def should_run(self, task: Task | str, now: float | None = None) -> bool:
        """True when the task has what it asked for and may run now, or runs. `now` is accepted and not needed."""
        record = self.core.get(units.parse_id(task))
        return record is not None and record.phase in ("Admitted", "Running")

    def tasks(self) -> list[_core.TaskRecord]:
        """Records of every task here and of the last that ended, in the order of submission."""
        return self.core.tasks()

    def stats(self, task_id: Task | str) -> TaskStats:
        """Figures of one task, see Task.stats(). Raises KeyError for an unknown task."""
        task = task_id if isinstance(task_id, Task) else self.get_task(task_id)
        if task is None:
            raise KeyError(f"no task {task_id!r}: never submitted here, or ended and forgotten")
        return task.stats()

    def global_stats(self) -> dict[str, Any]:
        """Counts of tasks by phase, bytes and parts per million reserved, and the settings of this scheduler."""
        stats = self.core.stats()
        return {
            **stats,
            "task_count": stats["submitted"],
            "completed_count": stats["succeeded"],
            "total_memory": self.total_memory,
            "sched_tick_ms": self.sched_tick_ms,
            "window_ms": self.window_ms,
            "workers": self.workers,
        }

    def snapshot(self) -> dict[str, Any]:
        """Counts as in global_stats(), and under "devices" what the running tasks get of each device.

        Of a task: gpu_ns (device time between events), share_10ms, share_100ms and share_1s (fractions of the device in
        the last whole periods that are measured), waited_ns (for a turn), throttled_ns (held by its limit), launches.
        Of a device: now_ns, in_flight_ns (an estimate of what it has yet to do) and the last throttles.
        """
        return shares.snapshot(self.core)

    @property
    def task_count(self) -> int:
        """Tasks submitted so far."""
        return self.core.stats()["submitted"]

    @property
    def completed_count(self) -> int:
        """Tasks that have succeeded so far."""
        return self.core.stats()["succeeded"]

    @property
    def reserved_memory(self) -> int:
        """Bytes reserved by tasks that are admitted or run."""
        return self.core.stats()["reserved_memory"]

    @property
    def available_memory(self) -> int:
        """Bytes that can still be reserved."""
        return self.core.stats()["available_memory"]

    def __repr__(self) -> str:
        stats = self.core.stats()
        counts = ", ".join(f"{stats[phase]} {phase}" for phase in ("queued", "admitted", "running", "succeeded"))
        return f"Scheduler({counts}; {stats['reserved_memory']} of {self.total_memory} bytes reserved)"


_live: weakref.WeakValueDictionary[int, Scheduler] = weakref.WeakValueDictionary()


def all_schedulers() -> list[Scheduler]:
    """Every scheduler of the process that something still holds, oldest first."""
    return list(_live.values())


def live_cores() -> list[_core.SchedulerCore]:
    """Their cores: for dashboards, which read records and call nothing else."""
    return [scheduler.core for scheduler in all_schedulers()]


@atexit.register
def _shut_all() -> None:
    """A thread that comes back from the core into an interpreter that is going down would not survive it."""
    for scheduler in all_schedulers():
        scheduler._shut(_EXIT_PATIENCE_S)


def _device_memory() -> int:
    ensure()
    return native.memory_info()[1]


def _name_of(fn: Callable[..., Any]) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = str(getattr(fn, "__name__", type(fn).__name__))
    return name.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
