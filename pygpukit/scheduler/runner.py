"""Runs one task on the calling thread: in its scheduling context, on a stream, and tells the core how it ended."""

from __future__ import annotations

import contextlib
import threading
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import faults, host_time, ranges
from pygpukit.core.errors import CompileError, ContextLostError, DriverError, InvalidSpecError, OutOfMemoryError
from pygpukit.core.text import words_of
from pygpukit.scheduler import slicer
from pygpukit.scheduler.place import OnDevice, Place, go, here, leave
from pygpukit.scheduler.task import Task

# The driver's numbers for faults after which a context answers nothing else any more, and for one that is destroyed.
_STICKY = faults.FATAL | {709}
_MAX_ERROR_CHARS = 1000
# Facts of ranges of tasks.
_FACTS = (
    "id",
    "policy",
    "partition",
    "priority",
    "memory_bytes",
    "share_ppm",
    "submitted_ns",
    "launches",
    "kernels",
    "transfers",
    "gpu_ns",
    "waited_ns",
    "throttled_ns",
)
StreamOf = Callable[[_core.Space | None, bool], native.Stream]  # by the space and whether the task is guaranteed


class Elsewhere(ABC):
    """A task's function that does not run on this thread."""

    @abstractmethod
    def run(self, core: _core.SchedulerCore, task: Task, start: _core.TaskStart, own_stream: StreamOf) -> None:
        """As run() below."""

    def __call__(self) -> NoReturn:
        raise TypeError("it does not run here")


def run(core: _core.SchedulerCore, task: Task, start: _core.TaskStart, own_stream: StreamOf) -> None:
    """Run a task that the core has just marked Running, and report its outcome to the core.

    It has succeeded once its function has returned and the stream is idle. Whatever is raised ends up in the task;
    KeyboardInterrupt cancels it. What its function allocates on this thread is held to the task's memory limit.
    """
    if isinstance(task.fn, Elsewhere):
        task.fn.run(core, task, start, own_stream)
        return
    error: BaseException | None = None
    task._error = None  # of an earlier run
    on: dict[int, OnDevice] = {}
    outer = here()
    open_range = begin_range(core, task)
    host_time.begin(start.number)
    try:
        fn = task.fn
        if fn is not None:  # else it was cancelled a moment ago
            slicer.start()
            task._runs_on = threading.get_ident()
            tenant = _core.intern(task.name)
            context = 0
            for device in start.devices:
                context = _enter(core, start, device, tenant, own_stream, on)
            first = on[start.devices[0]]
            if len(on) > 1:
                native.set_device(start.devices[0])
                native.set_current_stream(first.stream)
            go(Place(context, first.account, tenant, first.space, on))
            task._context.run(native.swap_session, None)  # it was submitted in one, perhaps
            task._value = task._context.run(fn)
            _refuse_unrun(task._value, task.name)
            _synchronize(on)
    except BaseException as raised:
        task._error = error = raised
        task._value = None
        if isinstance(raised, KeyboardInterrupt):
            core.cancel(task.id)  # what it launched and has not begun is dropped, not waited for
        # The first error is the cause; what it reserved is free only when idle.
        with contextlib.suppress(Exception):
            _synchronize(on)
    finally:
        host_time.end(start.number)
        if open_range is not None:
            task._context.run(open_range.end, error)
        leave(outer)
        for there in on.values():
            if there.space is not None:
                core.leave_space(there.space)
    task._runs_on = None  # before the core may have it run again, elsewhere
    try:
        report(core, task.id, error)
    finally:
        # Its traceback holds this frame: what a failed run held is to go with task._error, not at a collection.
        del error


def _enter(
    core: _core.SchedulerCore,
    start: _core.TaskStart,
    device: int,
    tenant: int,
    own_stream: StreamOf,
    on: dict[int, OnDevice],
) -> int:
    """The thread goes to a device of a task, on a stream of the task's own: the handle of its scheduling context."""
    if native.current_device() != device:
        native.set_device(device)
    space = core.enter_space(start.partition, device)
    native.set_space(space)  # for the streams that it makes itself, too
    try:
        stream = own_stream(space, start.guaranteed)
    except BaseException:
        if space is not None:
            core.leave_space(space)
        raise
    native.set_current_stream(stream)
    on[device] = OnDevice(stream, 0, space)  # from here on the space is left again, whatever happens
    context, account = core.enter(start, tenant, device)
    on[device] = OnDevice(stream, account, space)
    return context


def _synchronize(on: Mapping[int, OnDevice]) -> None:
    """Wait until a task's streams are idle, on all its devices; raise what was wrong on the first of them."""
    failed: Exception | None = None
    for device, there in on.items():
        if len(on) > 1:
            native.set_device(device)
        try:
            there.stream.synchronize()
        except Exception as error:
            failed = failed or error
    if failed is not None:
        raise failed


def begin_range(core: _core.SchedulerCore, task: Task) -> ranges.Range | None:
    """A run begins: who listens hears of it in the context of the task's function, so that its ranges are inside.
    None where nobody does."""
    if not ranges.has_listeners():
        return None

    def facts() -> dict[str, Any]:
        record = core.get(task.id)
        return {} if record is None else {name: getattr(record, name) for name in _FACTS}

    return task._context.run(ranges.begin, "task", task.name, facts)


def _refuse_unrun(value: object, name: str) -> None:
    """Raises InvalidSpecError for what a function returns that has yet to run: its work would never be done."""
    if isinstance(value, types.CoroutineType):
        value.close()  # Python would warn that nobody awaited it
        text = f"{name} returned a coroutine, which runs only when awaited; submit a function that calls asyncio.run()"
    elif isinstance(value, (types.GeneratorType, types.AsyncGeneratorType)):
        text = (
            f"{name} returned a generator, of which nothing has run; submit a function that returns its items in a list"
        )
    else:
        return
    raise InvalidSpecError(text, "fn")


def report(
    core: _core.SchedulerCore, task_id: str, error: BaseException | None, *, lost: bool = False, reason: str = ""
) -> None:
    """Tell the core how a run ended. lost: with its worker. reason: the core's name for it; "": by the error's type."""
    if error is None:
        core.finish(task_id)
    else:
        text = f"{type(error).__name__}: {words_of(error)}"[:_MAX_ERROR_CHARS]
        core.finish(task_id, text, reason or reason_of(error), lost)


def reason_of(error: BaseException) -> str:
    """The core's name for a failure."""
    if isinstance(error, OutOfMemoryError):
        return "OutOfMemory"
    if isinstance(error, CompileError):
        return "CompileError"
    if isinstance(error, DriverError):
        if error.code == faults.TIMEOUT and not _is_aftermath(error):
            return "WatchdogTimeout"
        return "StickyDeviceError" if error.code in _STICKY else "LaunchError"
    return "UserError"


def _is_aftermath(error: DriverError) -> bool:
    """True if it tells of an earlier fault: a lost context answers every call with the number of the first."""
    return isinstance(error, ContextLostError) and error is not faults.lost()
