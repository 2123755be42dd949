"""Desk: the unfinished tasks of one scheduler and the threads that run them.

Threads know the desk, not the scheduler: a scheduler that nobody holds any more goes away once its tasks have ended,
and its threads go with it. Until then the tasks on the desk hold it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import math
import threading
import time
import weakref
from typing import cast

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import TaskDeadlockError
from pygpukit.core.stream import DRIVER_PRIORITY, StreamPriority
from pygpukit.scheduler import place, runner
from pygpukit.scheduler.processes import Processes
from pygpukit.scheduler.task import Task
from pygpukit.scheduler.units import TaskState

_LONG_S = 3600.0  # waits end earlier, by wake()
_POLL_S = 0.02
_LOOK_S = 0.5


class Desk:
    """Hands admitted tasks to threads and outcomes to tasks."""

    def __init__(self, core: _core.SchedulerCore) -> None:
        self._core = core
        self.processes = Processes(core)
        self.tasks: dict[str, Task] = {}  # unfinished, by id
        self._ended: weakref.WeakValueDictionary[str, Task] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()  # over a task's way from those on the desk to those that have ended, and _read
        # Up to where the core's ends were read, and those whose tasks have yet to get their outcome.
        self._read: tuple[int, tuple[tuple[Task, _core.TaskRecord], ...]] = (0, ())
        self._interrupted = False  # whoever was giving outcomes
        self._starting = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._local = threading.local()
        self._waits: dict[int, Task] = {}  # by dispatcher, the task that it waits for, however long
        self._waiting = threading.Lock()  # over the beginning of a wait: the last of those in vain sees the others

    @property
    def running(self) -> bool:
        return bool(self._threads)

    def find(self, task_id: str) -> Task | None:
        """The object that submit() returned, as long as the task is unfinished or something else holds it."""
        with self._lock:
            return self.tasks.get(task_id) or self._ended.get(task_id)

    def settle(self) -> None:
        """Give every task that has ended since the last call its outcome."""
        try:
            self._settle()
        except BaseException:  # Ctrl-C: what is still owed is for the next call, of this thread or another
            self._interrupted = True
            self._core.wake()
            raise

    def _settle(self) -> None:
        with self._lock:
            since, owed = self._read
            records, seen = self._core.finished(since, 0.0)
            ended = tuple((task, record) for record in records if (task := self.tasks.get(record.id)) is not None)
            self._read = seen, owed + ended  # one step: Ctrl-C comes before it or after it
            if self._interrupted:
                self._interrupted, ended = False, owed + ended
            for task, _ in ended:
                self._ended[task.id] = task
                self.tasks.pop(task.id, None)
        if not ended:
            return
        for task, record in ended:
            task._settle(record)
        settled = {id(one) for one in ended}
        with self._lock:
            seen, owed = self._read
            self._read = seen, tuple(one for one in owed if id(one) not in settled)

    def start(self, workers: int) -> None:
        with self._starting:
            if self._threads:
                return
            self._stopping = threading.Event()
            for target in (self._watch, *[self._dispatch] * workers):
                name = f"pygpukit{target.__name__}-{len(self._threads)}"
                thread = threading.Thread(target=target, args=(self._stopping,), name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def stop(self, patience_s: float = math.inf, wait: bool = True) -> None:
        """Let tasks under way run to their end and the threads go; after the patience, go without them. wait: see
        Scheduler.stop()."""
        with self._starting:  # not while joining: a task under way may be at start()
            self._stopping.set()
            threads, self._threads = self._threads, []
        if wait:
            self._join(threads, patience_s)
        elif threads:
            threading.Thread(target=self._join, args=(threads,), name="pygpukit-stop", daemon=True).start()

    def _join(self, threads: list[threading.Thread], patience_s: float = math.inf) -> None:
        until = time.monotonic() + patience_s
        for thread in threads:
            while thread.is_alive() and thread is not threading.current_thread() and time.monotonic() < until:
                self._core.wake()  # again: a thread may have begun to wait since
                thread.join(_POLL_S)

    def step(self) -> Task | None:
        """Run one task on the calling thread; raise again what it raised that is no Exception."""
        session = native.swap_session(None)
        before, outer = self._core.taken(), place.here()  # neither is empty in a step within a task
        try:
            task = self._run_next(0.0)
        except BaseException:  # Ctrl-C outside the function, while the core counts on this thread
            for task_id in self._core.taken():
                if task_id not in before:
                    self._core.cancel(task_id)
                    self._core.finish(task_id)
            place.leave(outer)
            self.settle()
            raise
        finally:
            native.swap_session(session)
        self.settle()
        error = None if task is None else task._error
        if error is not None and not isinstance(error, Exception):
            raise error
        return task

    def is_dispatching(self) -> bool:
        """True on a dispatcher of this desk: in one of its tasks."""
        return threading.get_ident() in self._dispatchers()

    def wait_inside(self, task: Task) -> None:
        """Wait, on a dispatcher, until a task of this desk has ended.

        Raises TaskDeadlockError when it cannot: it has not started and every dispatcher waits, or they wait in a ring.
        Only a wait that begins can bring that about. A task that starts or goes back to the queue is on a dispatcher
        that does not wait, and no other change stops one. So that who waits last looks once, and gives up.
        """
        here = threading.get_ident()
        with self._waiting:
            self._waits[here] = task
            if here in self._stuck():
                del self._waits[here]
                raise TaskDeadlockError(
                    f"task {task.name!r} ({task.id}) is {task.phase} and cannot end: no worker of "
                    f"{len(self._dispatchers())} is free for it, as those that it needs wait for tasks "
                    "themselves; say depends_on= instead of waiting, or give Scheduler(workers=) more"
                )
        try:
            task._future.exception()  # no steps: Ctrl-C is for the main thread
        finally:
            self._waits.pop(here, None)

    def _dispatchers(self) -> set[int | None]:
        return {thread.ident for thread in self._threads[1:]}  # the first one watches

    def _stuck(self) -> set[int]:
        """Dispatchers that wait for what only they could bring to its end."""
        dispatchers = self._dispatchers()  # all of them: result() has been through start()
        waits = {ident: task for ident, task in dict(self._waits).items() if ident in dispatchers}
        records = {ident: self._core.get(task.id) for ident, task in waits.items()}
        stuck = set(records)

        def goes_on(ident: int) -> bool:
            record = records[ident]
            if record is None or record.deadline_ns or TaskState(record.phase).is_terminal:
                return True
            if record.phase in ("Running", "Suspended"):
                return waits[ident]._runs_on not in stuck
            return len(stuck) < len(dispatchers)

        while moving := {ident for ident in stuck if goes_on(ident)}:
            stuck -= moving
        return stuck

    def drain(self) -> None:
        """Wait until no task is left. Raises RuntimeError in a task of this desk, which would wait for itself."""
        if threading.current_thread() in self._threads:
            raise RuntimeError("a task cannot wait for its own scheduler to finish; close it outside")
        while tasks := list(self.tasks.values()):
            # Again after a while: a submission under way may yet be refused, and then nobody tells.
            concurrent.futures.wait([task._future for task in tasks], timeout=_LOOK_S)

    def shut(self, patience_s: float = math.inf) -> None:
        """Cancel what is left and stop for good."""
        self._stopping.set()
        self._core.close()
        for task_id in list(self.tasks):
            with contextlib.suppress(KeyError):
                self._core.cancel(task_id)
        self.settle()
        self.stop(patience_s)
        self.processes.close()

    def disown(self, core: _core.SchedulerCore) -> None:
        """In a forked child: other locks, no threads, and a core that refuses."""
        self._core = core
        self.processes = cast(Processes, core)  # which refuses as well; the workers are the parent's
        self._lock, self._starting, self._waiting = threading.Lock(), threading.Lock(), threading.Lock()
        self._threads = []

    def abandon(self) -> None:
        """Nobody holds the scheduler any more: let the threads go, without waiting for them."""
        self._stopping.set()
        self._core.close()
        self.processes.abandon()

    def _dispatch(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            try:
                self._run_next(_LONG_S)
                self.settle()
            except BaseException as error:  # of no task's function: a report or a callback that failed
                self._survive(error)

    def _watch(self, stopping: threading.Event) -> None:
        """Sees tasks that end without a dispatcher: cancelled, expired, or failed with a dependency."""
        while not stopping.is_set():
            woken = self._core.wakes()  # before the look at what wake() tells of: it may come before the wait
            self._core.finished(self._read[0], 0.0 if self._interrupted else _LONG_S, woken)
            try:
                self.settle()
            except BaseException as error:
                self._survive(error)

    def _survive(self, error: BaseException) -> None:
        """Tells of an exception that would end this thread, and ends what the thread was running."""
        for task_id in self._core.taken():
            self._core.finish(task_id, f"telling the core how it ended failed: {type(error).__name__}")
        with contextlib.suppress(Exception):
            error_info = (type(error), error, error.__traceback__, threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(error_info))

    def _run_next(self, timeout_s: float) -> Task | None:
        start = self._core.next(timeout_s)
        if start is None:
            return None
        task_id = start.id
        task = self.tasks.get(task_id)
        if task is None:  # cancelled and settled since, or its submission was interrupted
            self._core.cancel(task_id)
            self._core.finish(task_id)
            return None
        runner.run(self._core, task, start, self._stream)
        return task

    def _stream(self, space: _core.Space | None, guaranteed: bool) -> native.Stream:
        """The calling thread's own stream in a space: tasks that run at the same time never share one.

        A guaranteed task's goes before what no gate orders: work of other processes, and of threads without a task.
        """
        urgency = StreamPriority.HIGH if guaranteed else StreamPriority.LOW
        if not hasattr(self._local, "streams"):
            self._local.streams = {}
        streams: dict[tuple[int, int, int], tuple[_core.Space | None, native.Stream]] = self._local.streams
        # Streams on the whole device are all alike, on each device its own.
        key = (space.serial if space is not None and space.handle else 0, native.current_device(), urgency)
        if key not in streams:
            for old, (gone, _) in list(streams.items()):
                if old[0] and gone is not None and gone.retired:
                    del streams[old]
            streams[key] = (space, native.Stream(DRIVER_PRIORITY[urgency]))
        return streams[key][1]
