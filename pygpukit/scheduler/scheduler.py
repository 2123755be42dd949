"""Scheduler: functions with requests in, their results out. The core decides what runs when; threads here run it."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, SupportsFloat, SupportsIndex, cast

from pygpukit import _core
from pygpukit._core import native
from pygpukit.core import sharing
from pygpukit.core.backend import ensure, is_inherited
from pygpukit.core.device import get_device_info
from pygpukit.core.errors import InvalidSpecError
from pygpukit.core.nvml import MigInstance
from pygpukit.scheduler import instances, live, processes, request, units
from pygpukit.scheduler.desk import Desk
from pygpukit.scheduler.forked import Inherited
from pygpukit.scheduler.functions import name_of
from pygpukit.scheduler.partitions import fields_as_asked, partition_limits
from pygpukit.scheduler.task import Task, TaskStats
from pygpukit.scheduler.views import SchedulerViews

_PPM = 1_000_000
_WORKERS = 4  # of each device
_CLOSED = "this scheduler is closed; make a new one"


class Scheduler(SchedulerViews):
    """Admits functions by memory, compute share, priority and dependencies, and runs them on dispatcher threads.

    sched_tick_ms, window_ms: milliseconds, more than 0; they change nothing. Dispatching follows events, and shares are
    measured over 10 ms, 100 ms and 1 s.
    devices: so many, from device 0 on; None = all that there are. Each has memory and compute of its own.
    total_memory: bytes that tasks may reserve together on each device, as an int or "8GB"; None = its memory.
    workers: tasks that can run at a time; None = 4 for each device. max_queue: tasks that can wait at a time; more are
    rejected with QueueFull.
    Raises InvalidSpecError naming the field.

    start: the first submit() starts the dispatcher threads. With False nothing runs before start(), so that it can be
    filled first; result(), `await task` and `with scheduler:` call that, and step() runs one task at a time on the
    calling thread.

    order: which of the admitted tasks of one priority starts next. "turns": partitions take turns by their weight, and
    the tasks of one come in the order of submission; "fifo": in the order of submission; "deadline": the earliest
    deadline first; "shortest": the shortest run first, by estimate= or earlier runs of its name.
    admission: what becomes of a task that there is no room for. "in-order": those behind it wait, too; "first-fit":
    those that fit pass it; "at-once": it is Rejected (docs/scheduling.md, Policies).
    placement: which devices tasks get that leave the choice, of those on which they fit. "spread": where the least is
    reserved; "pack": where the most is, so that others stay whole (docs/devices.md).
    """

    def __init__(
        self,
        sched_tick_ms: float = 1.0,
        window_ms: float = 10.0,
        total_memory: units.MemoryLike = None,
        *,
        workers: int | None = None,
        max_queue: int = 1000,
        start: bool = True,
        order: str = "turns",
        admission: str = "in-order",
        devices: SupportsIndex | None = None,
        placement: str = "spread",
    ) -> None:
        self.sched_tick_ms = units.parse_positive(sched_tick_ms, "sched_tick_ms")
        self.window_ms = units.parse_positive(window_ms, "window_ms")
        self.device_count = _device_count(devices)
        self.workers = _WORKERS * self.device_count if workers is None else units.parse_count(workers, "workers")
        queue = units.parse_count(max_queue, "max_queue")
        memory = (
            _memory_by_device(self.device_count)
            if total_memory is None
            else [units.parse_memory(total_memory, "total_memory")] * self.device_count
        )
        self.total_memory = sum(memory)
        # Endings must be remembered for longer than it takes to read them.
        self.core: _core.SchedulerCore = _core.SchedulerCore(
            memory[0],
            max_queue=queue,
            max_finished=max(4096, 2 * queue),
            workers=self.workers,
            order=units.parse_name(order, "order", _core.SchedulerCore.orders()),
            admission=units.parse_name(admission, "admission", _core.SchedulerCore.admissions()),
            further_memory=memory[1:],
            placement=units.parse_name(placement, "placement", _core.SchedulerCore.placements()),
        )
        self.order, self.admission, self.placement = order, admission, placement
        self.closed = False
        self._starts = bool(start)  # with the next submission
        self._has_processes = False  # no submission asks for them before there can be any
        self._desk = Desk(self.core)
        self._prefix, self._numbers = f"{os.urandom(4).hex()}-", itertools.count(1)  # of the ids that it makes up
        self.label = live.add(self)
        weakref.finalize(self, self._desk.abandon).atexit = False

    # ---- in ----

    @request.signature_of(request.submit)
    def submit(
        self,
        fn: Callable[..., Any],
        *args: Any,
        memory: units.MemoryLike = None,
        bandwidth: SupportsFloat | None = None,
        **options: Any,
    ) -> Task:
        """Submit `fn(*args, **kwargs)` and return its Task at once.

        A function that takes nothing by position may be followed by the documented (memory, bandwidth, policy).

        memory: bytes, or "512MB" (powers of 1024). bandwidth: share of the device from 0 to 1.
        memory_limit, bandwidth_limit: how far it may go over its requests; without a request, the request too. What the
        function allocates beyond memory_limit is refused with OutOfMemoryError; memory alone is a reservation.
        policy: fills in the limits that its class needs, and is then held to be true: "guaranteed" sets limit = request
        and needs both requests; "burstable" needs one; "best_effort" has none. None derives the class, as Kubernetes.
        The name of a plugin's policy asks that, which may change the demand or refuse it (docs/plugins.md).
        priority: higher first; one that does not fit makes admitted tasks of lower priority wait again, if that helps
        and they have not started. partition: one of create_partition(). depends_on: tasks that must succeed first.
        deadline: seconds from now; a task that has not ended by then is Expired, and one that cannot end by then as far
        as run times so far tell, or estimate (seconds of run time), is Rejected. The waits for memory and share and for
        one of the workers count, those of unknown length as none.
        retry: how often to run `fn` again when it fails, after 10 ms, then 20 and so on up to 1 s.
        device: where it runs, a number, a gp.cuda.Device or "cuda:1", or "any": whichever the placement chooses; None =
        that of its partition, device 0 without one. devices: several, as so many, whichever, or as a list: `memory` and
        `bandwidth` are then of each of them, and it gets all or waits (docs/devices.md).
        idempotent: `fn` may run twice: it starts over, once, when the worker of its partition was lost under it.
        task_id: an id of your own; None makes one. name: for dashboards; None = the function's.

        A well-formed task that can never be admitted comes back in phase Rejected, with reason and numbers; its
        result() raises TaskRejectedError. Raises InvalidSpecError naming the field for a malformed request or taken id,
        for a function that is async or a generator, and for a function or argument that cannot travel to the process of
        its partition (docs/partitions.md), and RuntimeError on a closed scheduler; nothing is kept of it then.
        """
        if self.closed:
            raise RuntimeError(_CLOSED)
        label, where = name_of(fn), ""
        identity = rest = None
        if args and (asked := request.documented(fn, args, memory, bandwidth, options)) is not None:
            args, (memory, bandwidth) = (), asked
        if options:
            if "policy" in options:
                memory, bandwidth = request.decided(self, label, memory, bandwidth, options)
            rest = request.take(options)
            label, identity, where = rest.pop("name", label), rest.pop("id", None), rest.pop("partition", "")
        if identity is None:
            identity = f"{self._prefix}{next(self._numbers)}"
        memory_bytes = 0 if memory is None else units.parse_memory(memory)
        share_ppm = 0 if bandwidth is None else units.parse_share(bandwidth)
        if self._has_processes and (process := self.core.worker_partition(where)) is not None:
            where, call = process, self._desk.processes.call(process, fn, args, options)
        else:
            call = functools.partial(fn, *args, **options) if args or options else fn
        task = Task(self, identity, label, call)
        unfinished = self._desk.tasks
        try:
            # There before the core has it, which may hand it to a dispatcher at once.
            if unfinished.setdefault(identity, task) is not task:
                raise InvalidSpecError(f"task_id={identity!r} is taken; choose another", "task_id")
            if rest:
                taken_in = self.core.submit(identity, label, memory_bytes, share_ppm, where, **rest)
            else:
                taken_in = self.core.submit(identity, label, memory_bytes, share_ppm, where)
        except BaseException:  # Ctrl-C, too, as soon as it is there
            if unfinished.get(identity) is task:
                unfinished.pop(identity, None)
            raise
        if self._starts:
            self.start()
        if not taken_in:
            self._desk.settle()
        return task

    def cancel(self, task: Task | str) -> bool:
        """Cancel a task; False when it had ended before. A function under way launches nothing more; in a partition of
        isolation "process" it ends with its worker.

        Raises KeyError for an unknown task.
        """
        cancelled = self.core.cancel(units.parse_id(task))
        self._desk.settle()
        return cancelled

    def pause(self, task: Task | str) -> bool:
        """Hold one unfinished task back until resume(); False when it was paused already.

        One that waits is not admitted meanwhile and holds nobody back, one that is admitted gives back what it reserved
        and waits, and one that runs is Suspended: it keeps its memory, its share and its dispatcher, what it launched
        before runs to its end, and its next launch or copy waits. Deadlines go on, and close() waits for it, too.
        Raises KeyError for an unknown task, and RuntimeError for one that has ended or runs in a worker process.
        """
        return self._changed(self.core.pause(units.parse_id(task)))

    def resume(self, task: Task | str) -> bool:
        """Let a paused task go on, at its old place; False when it was not paused. Raises as pause()."""
        return self._changed(self.core.resume(units.parse_id(task)))

    # ---- changes under way ----

    def set_priority(self, task: Task | str, priority: SupportsIndex) -> None:
        """Serve an unfinished task by another priority from now on.

        One that waits moves in its line, one that is admitted may have to give way, and one that runs goes on. Raises
        InvalidSpecError for what is no priority or one that its partition does not allow, KeyError for an unknown task
        and RuntimeError for one that has ended; nothing changes then.
        """
        self.core.adjust(units.parse_id(task), priority=units.parse_priority(priority))
        self._adjusted()

    def set_share(self, task: Task | str, bandwidth: SupportsFloat, *, limit: SupportsFloat | None = None) -> None:
        """Promise an unfinished task another share of the device, from 0 to 1, from now on; what runs is paced by it.

        limit: how far it may go over that; None = as it is, and of a guaranteed task always the share. A task that runs
        gets more only out of what is free, and then before those that wait. Raises InvalidSpecError naming the field
        for a share that cannot be had, KeyError for an unknown task and RuntimeError for one that has ended; nothing
        changes then.
        """
        limit_ppm = None if limit is None else units.parse_share(limit, "bandwidth_limit")
        share_ppm = units.parse_share(bandwidth)
        self.core.adjust(units.parse_id(task), share_ppm=share_ppm, share_limit_ppm=limit_ppm)
        self._adjusted()

    def _changed(self, changed: bool) -> bool:
        if changed:
            self._adjusted()
        return changed

    def _adjusted(self) -> None:
        """A change that no event tells of: dashboards look at the version."""
        live.adjusted()
        self._desk.settle()

    # ---- partitions ----

    def create_partition(
        self, partition_id: str, *, name: str | None = None, instance: str | None = None, **limits: Any
    ) -> None:
        """Keep a part of the device for the tasks of submit(partition=partition_id).

        limits: as of partition_limits(). Tasks without a partition share what no partition keeps. With isolation="sm"
        its tasks have multiprocessors to themselves, as many as `bandwidth` comes to, rounded up: partitions.get() and
        snapshot() tell how many. Tasks under way keep to the old division until they end. instance: with isolation
        "mig", the uuid of the one to take; None = the first that no partition has. Raises InvalidSpecError naming the
        field; nothing changes then.
        """
        label = partition_id if name is None else units.parse_text(name, "name")
        identity = units.parse_text(partition_id, "partition_id")
        ensure()
        placed = None
        if instance is not None or limits.get("isolation") == "mig":
            placed = self._instance(instance, limits)
            limits = instances.limits_on(placed, limits)
        limits_of_partition = partition_limits(**limits)
        if processes.AVAILABLE:
            self.core.offer_processes()
            self._has_processes |= limits_of_partition.isolation in processes.LEVELS
        with fields_as_asked():
            self.partitions.create_partition(identity, label, limits_of_partition)
        if limits_of_partition.isolation == "sm":
            sharing.divide()
        self._desk.processes.end(identity)  # of an earlier partition of this id
        if placed is not None:
            self._desk.processes.place(identity, placed)
        self._adjusted()

    def resize_partition(self, partition_id: str, **limits: Any) -> None:
        """Give a partition new limits, all of them, whatever runs in it. Raises InvalidSpecError naming the field.

        Tasks that hold more than the new limits keep it to their end; waiting ones that can never fit are Rejected. The
        level of isolation and the device stay.
        """
        identity = units.parse_text(partition_id, "partition_id")
        partition = self.partitions.get(identity)
        if partition is not None:
            limits.setdefault("isolation", partition.limits.isolation)
            limits.setdefault("device", partition.limits.device)
            if (placed := self._desk.processes.instances().get(identity)) is not None:
                limits = instances.limits_on(placed, limits)
        with fields_as_asked():
            self.partitions.resize_partition(identity, partition_limits(**limits))
        self._adjusted()

    def _instance(self, asked: str | None, limits: Mapping[str, Any]) -> MigInstance:
        """The instance for a new partition. Raises InvalidSpecError."""
        if limits.get("isolation") != "mig":
            raise InvalidSpecError(f"instance={asked!r} is for isolation='mig'; leave it out, or say so", "instance")
        device = units.parse_device(limits.get("device", 0))
        taken = [
            one.uuid for scheduler in live.all_schedulers() for one in scheduler._desk.processes.instances().values()
        ]
        return instances.choose(asked, device, taken)

    def set_partition_share(self, partition_id: str, bandwidth: SupportsFloat) -> None:
        """Keep another share of the device, from 0 to 1, for a partition; its other limits stay as they are.

        Raises InvalidSpecError naming the field; nothing changes then.
        """
        share = units.parse_share(bandwidth) / _PPM
        partition = self.partitions.get(units.parse_text(partition_id, "partition_id"))
        if partition is None:
            known = ", ".join(map(repr, self.partitions.partition_ids())) or "none"
            raise InvalidSpecError(f"no partition {partition_id!r}; there is {known}", "partition_id")
        with fields_as_asked():
            self.partitions.resize_partition(partition_id, partition.limits.compute(share))
        self._adjusted()

    def delete_partition(self, partition_id: str) -> None:
        """Remove a partition without unfinished tasks, and end its worker process if it has one. Raises
        InvalidSpecError naming the field."""
        identity = units.parse_text(partition_id, "partition_id")
        with fields_as_asked():
            self.partitions.delete_partition(identity)
        self._desk.processes.end(identity)

    # ---- running ----

    def start(self) -> None:
        """Start the dispatcher threads; does nothing while they run. Raises RuntimeError on a closed scheduler."""
        if isinstance(self.core, Inherited):
            self.core.refuse()
        if self.closed:
            raise RuntimeError(_CLOSED)
        self._starts = False
        self._desk.start(self.workers)

    @property
    def started(self) -> bool:
        """True if its dispatcher threads are there."""
        return self._desk.running

    def stop(self, wait: bool = True) -> None:
        """Stop dispatching: tasks under way run to their end, the others wait for the next start() or step().

        wait: until the dispatcher threads have gone. Without, they go when they can, and a start() from now on counts.
        """
        self._starts = False
        self._desk.stop(wait=wait)

    def step(self) -> Task | None:
        """Run the next admitted task on the calling thread and return it; None when there is none to run now."""
        return self._desk.step()

    def close(self) -> None:
        """Let the tasks already here end, then stop for good. Where nothing was started, they are cancelled instead.

        Multiprocessors that its partitions have to themselves are given back.
        """
        if self._desk.running:
            self._desk.drain()
        self._shut()

    def _disown(self) -> None:
        """In a forked child, which has neither the threads nor, for certain, the locks."""
        remedy = 'start processes by multiprocessing.get_context("spawn"), and make a Scheduler there'
        self.core = cast(_core.SchedulerCore, Inherited("this scheduler and its tasks", remedy))
        self._desk.disown(self.core)

    def _shut(self, patience_s: float = math.inf) -> None:
        self.closed = True
        self._desk.shut(patience_s)
        for name in self.partitions.partition_ids():  # others may have the multiprocessors now
            partition = self.partitions.get(name)
            if partition is not None and partition.sms:
                with contextlib.suppress(InvalidSpecError):  # a task that does not end keeps them
                    self.partitions.delete_partition(name)

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
        """The task with an id; None if it is unknown, as before its submit() has returned, or ended long ago.

        Results live as long as the object that submit() returned: when that is gone, result() of this one says so.
        """
        number = units.parse_id(task_id)
        known = self.core.get(number) is not None
        task = self._desk.find(number)
        if task is None and known:
            record = self.core.get(number)  # its last one: it may have ended between the two looks
            if record is not None:
                task = Task(self, record.id, record.name, None)
                task._settle_without_value(record)
        elif task is not None and not known and task._ended is None:
            return None  # its submission is under way, and may yet be refused
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


def _device_count(devices: SupportsIndex | None) -> int:
    """All that there are, or the first so many. Raises InvalidSpecError for more than that."""
    if devices is None and is_inherited():
        return 1  # tasks can use none here, and say so
    ensure()
    there = native.device_count()
    count = there if devices is None else units.parse_count(devices, "devices")
    if count > there:
        raise InvalidSpecError(f"devices={count}; there are {there}, give as many or fewer", "devices")
    return count


def _memory_by_device(count: int) -> list[int]:
    """Bytes of each: of the current one as the driver tells, of others as their facts do, which opens none of them."""
    here = native.current_device()
    return [
        native.memory_info()[1] if device == here else get_device_info(device).total_memory for device in range(count)
    ]
