"""Task: the handle of one submitted function."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import math
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat, SupportsIndex

from pygpukit._core import TaskRecord, now_ns, pool_traffic
from pygpukit.core.errors import GPUError, TaskCancelledError, TaskRejectedError
from pygpukit.core.shortfall import had_by, shortfall
from pygpukit.core.text import task_numbers
from pygpukit.scheduler import shares
from pygpukit.scheduler.units import TaskPolicy, TaskState

if TYPE_CHECKING:
    from pygpukit.scheduler.scheduler import Scheduler

_PPM = 1_000_000
_NS = 1_000_000_000
_STEP_S = 0.05  # of a wait: so soon Ctrl-C is heard
_settling = threading.Lock()  # over the moment when a task ends, against that when somebody first waits for it


# Figures of stats() that a worker process counts for a task, in the order of SchedulerCore.charge().
USED = (
    "launches",
    "slices",
    "kernels",
    "transfers",
    "gpu_ns",
    "pacing_delay_count",
    "asked_ns",
    "others_ns",
    "waited_ns",
    "throttles",
    "throttled_ns",
)


class Condition(NamedTuple):
    """A condition of a task beside its phase.

    type: QuotaReserved, MemoryResident, Throttled, Evicted, Preempted, Requeued or DeadlineAtRisk. status: "True",
    "False" or "Unknown". reason: one word. message: numbers, or "". last_change_ns: on the event ring's clock, when the
    status became what it is; the submission if it never changed.
    """

    type: str
    status: str
    reason: str
    message: str
    last_change_ns: int


class TaskStats(dict[str, Any]):
    """Figures of one task at one moment; `stats["phase"]` and `stats.phase` are the same."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"task statistics have no {name!r}; they have {', '.join(self)}") from None


@functools.total_ordering
class Task:
    """A submitted function. Await it or call result().

    It equals, hashes and sorts like its id, and is accepted wherever an id is.
    """

    # Until something happens to it. A submission is to cost little, so that it sets no more than it must.
    _ended: TaskRecord | None = None  # its last record, once its outcome is visible
    _value: Any = None
    _error: BaseException | None = None
    _keeps_value = True
    _waited: _Future | None = None
    _runs_on: int | None = None  # the thread that its function is on

    def __init__(self, scheduler: Scheduler, task_id: str, name: str, fn: Callable[[], Any] | None) -> None:
        self.id = task_id
        self.name = name
        self.fn = fn  # None once it has ended, so that what it holds can go
        self._scheduler = scheduler
        self._context = copy_context()  # what it prints goes where the submitter's prints go

    @property
    def _future(self) -> _Future:
        """Made when somebody first waits: most of a submission's cost would be this."""
        if self._waited is None:
            with _settling:
                if self._waited is None:
                    future = _Future(self)
                    if self._ended is not None:
                        self._complete(future, self._ended)
                    self._waited = future
        return self._waited

    @property
    def record(self) -> TaskRecord:
        """The core's record of it, as of now."""
        record = self._ended or self._scheduler.core.get(self.id) or self._ended  # it may end while the core is asked
        if record is None:
            raise KeyError(f"task {self.name!r} ({self.id}) ended so long ago that it is forgotten")
        return record

    @property
    def phase(self) -> str:
        """The name of its phase, "Running" for example."""
        return self.record.phase

    @property
    def state(self) -> TaskState:
        """Its phase, as a member of TaskState."""
        return TaskState(self.record.phase)

    @property
    def reason(self) -> str:
        """Why it was rejected, waits or failed, as one of a closed set of names; "" when there is nothing to say."""
        return self.record.reason

    @property
    def paused(self) -> bool:
        """True while pause() holds it back."""
        return self.record.paused

    @property
    def detail(self) -> dict[str, int | float]:
        """The numbers behind the reason that apply: asked, available, position, estimated_wait_ns, requeues,
        preemptions."""
        return self.record.detail

    @property
    def conditions(self) -> list[Condition]:
        """Its conditions beside its phase: one of each type; none for a task that ended so long ago that it is
        forgotten."""
        return [Condition(*fields) for fields in self._scheduler.core.conditions(self.id) or ()]

    @property
    def memory(self) -> int:
        """Bytes it asked for."""
        return self.record.memory_bytes

    @property
    def bandwidth(self) -> float:
        """The share of the device it is promised, from 0 to 1; setting it is Scheduler.set_share()."""
        return self.record.share_ppm / _PPM

    @bandwidth.setter
    def bandwidth(self, bandwidth: SupportsFloat) -> None:
        self._scheduler.set_share(self, bandwidth)

    @property
    def policy(self) -> TaskPolicy:
        """Its QoS class."""
        return TaskPolicy(self.record.policy)

    @property
    def partition(self) -> str:
        """The partition it asked for; "" for the default."""
        return self.record.partition

    @property
    def device(self) -> int | None:
        """The first device that it is on; None while it leaves the choice and waits."""
        return self.record.device

    @property
    def devices(self) -> tuple[int, ...]:
        """All devices that it is on, ascending; none while it leaves the choice and waits."""
        return tuple(self.record.devices)

    @property
    def priority(self) -> int:
        """Higher runs first; setting it is Scheduler.set_priority()."""
        return self.record.priority

    @priority.setter
    def priority(self, priority: SupportsIndex) -> None:
        self._scheduler.set_priority(self, priority)

    @property
    def last_launch(self) -> float:
        """When it was started, in seconds on the clock of the event ring; 0.0 before."""
        return self.record.started_ns / _NS

    @property
    def execution_count(self) -> int:
        """Number of its starts: 0 or 1, or more after requeues."""
        record = self.record
        return 1 + int(record.detail.get("requeues", 0)) if record.started_ns else 0

    @property
    def pacing_delay_count(self) -> int:
        """Number of its launches that were held back to keep to its share."""
        return self.record.paced

    def touch(self) -> None:
        """Deprecated, changes nothing: the scheduler sees every launch itself."""
        warnings.warn("Task.touch() does nothing: launches are recorded where they happen", DeprecationWarning, 2)

    def done(self) -> bool:
        """True once it has ended, in whatever way."""
        return self.state.is_terminal

    def cancel(self) -> bool:
        """Cancel it; False when it had ended before. A function under way goes on, but launches nothing more; in a
        partition of isolation "process" it ends with its worker."""
        return self._scheduler.cancel(self)

    def pause(self) -> bool:
        """Scheduler.pause() of it."""
        return self._scheduler.pause(self)

    def resume(self) -> bool:
        """Scheduler.resume() of it."""
        return self._scheduler.resume(self)

    def result(self, timeout: float | None = None) -> Any:
        """The function's result; its work on the device is complete. Starts the dispatchers if need be.

        timeout: seconds. Raises TimeoutError after it; the function's own exception if it raised; TaskRejectedError
        (reason, detail) for a rejected task; TaskCancelledError for one that was cancelled or passed its deadline;
        GPUError for one whose dependency did not succeed; TaskDeadlockError in a task of the same scheduler, without a
        timeout, when no worker is left that could bring this one to its end. Ctrl-C interrupts the wait, not the task.
        """
        self._start()
        desk = self._scheduler._desk
        if timeout is None and self._ended is None and desk.is_dispatching():
            desk.wait_inside(self)
        elif not self._ends(timeout):
            raise TimeoutError(f"task {self.name!r} ({self.id}) is still {self.phase} after {timeout} s")
        return self._future.result()

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio

        self._start()
        return asyncio.wrap_future(self._future).__await__()

    def stats(self) -> TaskStats:
        """Its figures: bytes, fractions, nanoseconds (of the event ring's clock; 0 = not yet) and counts.

        gpu_ns is device time between events; achieved_share is that over the time since it was started, share_10ms,
        share_100ms and share_1s are the shares of late while it runs. asked_ns: it had work that was not done for so
        long, and others had others_ns of the device meanwhile. waited_ns: its launches waited for a turn so long;
        throttles and throttled_ns: its limit held them back so often and so long. slices: parts that long ones were cut
        into. kernels and transfers (copies) count what it submitted, launches
        what of all that the device was given through the gate. queue_position: its place in line, from 1; 0 out of it.
        evicted_bytes and restored_bytes: what went to host memory and came back so far of all that ran under its name
        in this process. conditions: what is true of it beside its phase.
        shortfall: why achieved_share is below its promise, as words; "" where it is not: "not asked for" (it launched
        too little), "the host is too slow" (its thread was busy between launches, or the device stood idle while they
        waited), "held by its limit", or "promise broken" (others had the device while it waited, and more of it than
        their part).
        """
        late = shares.shares(self._scheduler.core, self.record.number)
        record = self.record  # after measuring: device times are up to date
        started, finished = record.started_ns, record.finished_ns
        evicted, restored = next((moved for name, *moved in pool_traffic() if name == record.name), (0, 0))
        return TaskStats(
            id=record.id,
            number=record.number,
            name=record.name,
            phase=record.phase,
            state=TaskState(record.phase),
            reason=record.reason,
            paused=record.paused,
            detail=record.detail,
            policy=record.policy,
            memory=record.memory_bytes,
            bandwidth=record.share_ppm / _PPM,
            priority=record.priority,
            partition=record.partition,
            device=record.device,
            devices=tuple(record.devices),
            queue_position=int(record.detail.get("position", 0)),
            evicted_bytes=evicted,
            restored_bytes=restored,
            memory_limit=record.memory_limit,
            bandwidth_limit=None if record.share_limit_ppm is None else record.share_limit_ppm / _PPM,
            submitted_ns=record.submitted_ns,
            started_ns=started,
            finished_ns=finished,
            wait_ns=(started or finished or record.submitted_ns) - record.submitted_ns,
            run_ns=finished - started if started and finished else 0,
            launches=record.launches,
            slices=record.slices,
            kernels=record.kernels,
            transfers=record.transfers,
            gpu_ns=record.gpu_ns,
            achieved_share=record.gpu_ns / max(1, (finished or now_ns()) - started) if started else 0.0,
            **late,
            asked_ns=record.asked_ns,
            others_ns=record.others_ns,
            waited_ns=record.waited_ns,
            throttles=record.throttles,
            throttled_ns=record.throttled_ns,
            last_launch=self.last_launch,
            execution_count=self.execution_count,
            pacing_delay_count=record.paced,
            conditions=self.conditions,
            shortfall=shortfall(record.share_ppm / _PPM, had_by(record)).value,
            error=record.error,
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (str, Task)):
            return self.id == str(other)
        return NotImplemented

    def __lt__(self, other: object) -> bool:
        if isinstance(other, (str, Task)):
            return self.id < str(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        record = self.record
        reason = f", reason={record.reason!r}" if record.reason else ""
        return f"Task(id={self.id!r}, name={self.name!r}, phase={record.phase!r}{reason})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The text in a notebook: its repr, and its share beside the promise."""
        printer.text(repr(self))
        record = self.record
        if record.started_ns and record.share_ppm:
            had = record.gpu_ns / max(1, (record.finished_ns or now_ns()) - record.started_ns)
            why = shortfall(record.share_ppm / _PPM, had_by(record)).value
            printer.text(f", {had:.0%} of the device, promised {record.share_ppm / _PPM:.0%}{why and ': ' + why}")

    # ---- for the rest of this package ----

    def _ends(self, timeout_s: float | None) -> bool:
        """Wait for the end, whatever it is; False at the timeout.

        In steps, since a lock's wait without a timeout does not hear Ctrl-C everywhere: not on the machine with the
        H200.
        """
        future = self._future
        until_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = until_s - time.monotonic()
            try:
                future.exception(max(0, min(left_s, _STEP_S)))
                return True
            except concurrent.futures.TimeoutError:
                if left_s <= _STEP_S:
                    return False

    def _start(self) -> None:
        finished = self._ended is not None and (
            self._waited is None or self._waited.done()
        )  # else Ctrl-C came in between
        if not finished and not self._scheduler.closed:
            self._scheduler.start()

    def _settle(self, record: TaskRecord) -> None:
        """Make the outcome visible: the core has ended it, and its runner left value and error here before. Again does
        no harm."""
        self.fn = None
        with _settling:
            self._ended = record
            future = self._waited
        if future is not None:
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # it has its outcome
                self._complete(future, record)

    def _complete(self, future: _Future, record: TaskRecord) -> None:
        if record.phase == "Succeeded" and self._keeps_value:
            future.set_result(self._value)
        else:
            future.set_exception(self._failure(record))

    def _settle_without_value(self, record: TaskRecord) -> None:
        """For a second handle, made after the first was dropped."""
        self._keeps_value = False
        if TaskState(record.phase).is_terminal:
            self._settle(record)

    def _failure(self, record: TaskRecord) -> BaseException:
        label = f"task {self.name!r} ({self.id})"
        match record.phase:
            case "Rejected":
                text = f"{label} was rejected: {record.error or ', '.join([record.reason, *task_numbers(record)])}"
                return TaskRejectedError(text, record.reason, record.detail)
            case "Cancelled":
                return TaskCancelledError(f"{label} was cancelled")
            case "Expired":
                return TaskCancelledError(f"{label} had not ended by its deadline")
            case "Succeeded":
                return GPUError(f"{label} succeeded; its result went with the object that submit() returned: keep that")
        return self._error or GPUError(f"{label} failed: {record.reason}: {record.error}")


class _Future(concurrent.futures.Future[Any]):
    """Carries the outcome to waiting threads and event loops. To cancel it is to cancel the task."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task

    def cancel(self) -> bool:
        return self._task.cancel()
