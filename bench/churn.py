"""Suite `churn`: tenants that join and leave, a hundred a second: what they wait for, and what stays behind.

Each makes a partition of its own, submits a task that allocates, runs a short kernel and checks what it wrote, and
takes the partition away when that has ended; every tenth task raises instead. Tenants join when the clock says so,
however those before them fare, and the longest of the waits counts from that moment.
"""

from __future__ import annotations

import gc
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygpukit.benchmark.result import BenchmarkResult, Unavailable, percentile

if TYPE_CHECKING:
    from pygpukit.jit import JITKernel
    from pygpukit.scheduler import Scheduler, Task

CATEGORY = "churn"
RATE = 100  # tenants a second
WARM_UP = 2  # times as many tenants before those that count, at ten times their rate
REMEMBERED = 4096  # tasks that a scheduler keeps the records of once they have ended
FAILS = 10  # of so many tasks one raises
PATIENCE_S = 20.0  # after the last has joined
SAMPLES = 20  # of what grows
WORDS = 1 << 14
TERMINAL = ("Succeeded", "Failed", "Cancelled", "Expired", "Rejected")
SOURCE = """
extern "C" __global__ void greet(unsigned *x, unsigned tenant, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i ^ tenant;
}
"""
UNITS = {
    "resident memory": "KiB",
    "file descriptors": "count",
    "arrays on the device": "KiB",
    "device memory in use": "KiB",
    "interned names": "count",
}


def _nothing() -> None:
    pass


class Planned(Exception):
    """The error that every tenth task raises."""


class Probe:
    """Reads what may grow."""

    def __init__(self) -> None:
        self._own_names = 0

    def __call__(self) -> dict[str, float]:
        from pygpukit import _core
        from pygpukit._core import native
        from pygpukit.memory import pool

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        free, total = native.memory_info()
        known = _core.intern(f"churn probe {time.perf_counter_ns()}")  # a new name's id: how many there were before
        names = known - self._own_names
        self._own_names += 1
        return {
            "resident memory": pages * os.sysconf("SC_PAGE_SIZE") / 1024,
            "file descriptors": len(list(Path("/proc/self/fd").iterdir())),
            "arrays on the device": pool.stats()["used"] / 1024,
            "device memory in use": (total - free) / 1024,
            "interned names": names,
        }


@dataclass(frozen=True)
class Stay:
    """One tenant. Times on the scheduler's clock: when it was to join, and just before its submission."""

    name: str
    task: Task
    due_ns: int
    submitting_ns: int


@dataclass
class Course:
    """The course of one run's tenants. Times in microseconds, by wait; samples of what grows, by column."""

    joined: int = 0
    wrong: int = 0
    stuck: int = 0
    ends: Counter[int] = field(default_factory=Counter)  # terminal transitions of each task
    events_lost: int = 0
    waits_us: dict[str, list[float]] = field(default_factory=dict)
    grown: dict[str, list[float]] = field(default_factory=dict)

    def wait(self, name: str, begin_ns: int, end_ns: int) -> None:
        self.waits_us.setdefault(name, []).append((end_ns - begin_ns) / 1000)


def _work(kernel: JITKernel, tenant: int) -> bool:
    """A tenant's task: whether its array holds what its kernel wrote."""
    import numpy as np

    import pygpukit as gp

    x = gp.empty(WORDS, dtype="uint32")
    kernel[WORDS // 256, 256](x, tenant, WORDS)
    right = bool((x.to_numpy() == (np.arange(WORDS, dtype=np.uint32) ^ np.uint32(tenant))).all())
    if tenant % FAILS == 0:
        raise Planned
    return right


class Season:
    """One run of tenants on one scheduler: they join here, and leave in a thread of its own."""

    def __init__(self, scheduler: Scheduler, kernel: JITKernel, first: int, count: int, rate: float) -> None:
        self._scheduler = scheduler
        self._kernel = kernel
        self._tenants = range(first, first + count)
        self._rate = rate
        self._leaving: queue.Queue[Stay | None] = queue.Queue()
        self._since = scheduler.snapshot()["next_sequence"]
        self._admitted: dict[int, int] = {}
        self._probe = Probe()
        self._until = time.monotonic() + count / rate + PATIENCE_S
        self._failure: BaseException | None = None
        self.course = Course()

    def run(self) -> Course:
        """All tenants, from the first that joins to the last that leaves."""
        from pygpukit import _core

        gc.collect()
        self._sample(0)
        leaver = threading.Thread(target=self._leave)
        leaver.start()
        start_ns = _core.now_ns()
        try:
            for i, tenant in enumerate(self._tenants):
                due_ns = start_ns + round(i * 1e9 / self._rate)
                time.sleep(max(0, due_ns - _core.now_ns()) * 1e-9)
                self._join(tenant, due_ns)
        finally:
            self._leaving.put(None)
            leaver.join()
        if self._failure is not None:
            raise self._failure
        self._read_events()
        gc.collect()
        self._sample(len(self._tenants))
        return self.course

    def _join(self, tenant: int, due_ns: int) -> None:
        from pygpukit import _core

        name = f"tenant {tenant}"
        self._scheduler.create_partition(name, memory="1MB", bandwidth=0.001)
        submitting_ns = _core.now_ns()
        task = self._scheduler.submit(
            _work, self._kernel, tenant, memory=4 * WORDS, bandwidth=0.001, partition=name, name=name
        )
        self.course.joined += 1
        self._leaving.put(Stay(name, task, due_ns, submitting_ns))

    def _leave(self) -> None:
        gone, every = 0, max(1, len(self._tenants) // SAMPLES)
        try:
            while (stay := self._leaving.get()) is not None:
                self._leave_one(stay)
                gone += 1
                if gone % every == 0 and gone < len(self._tenants):
                    self._sample(gone)
        except BaseException as error:
            self._failure = error

    def _leave_one(self, stay: Stay) -> None:
        try:
            self.course.wrong += not stay.task.result(max(0.0, self._until - time.monotonic()))
        except Planned:
            pass
        except TimeoutError:
            self.course.stuck += 1
            return  # its partition stays, and shows in the ledger
        self._scheduler.delete_partition(stay.name)
        self._record(stay)

    def _record(self, stay: Stay) -> None:
        record = stay.task.record
        if record.number not in self._admitted:
            self._read_events()
        wait = self.course.wait
        wait("submit to admit", stay.submitting_ns, self._admitted.pop(record.number))
        wait("submit to start", stay.submitting_ns, record.started_ns)
        wait("submit to done", stay.submitting_ns, record.finished_ns)
        wait("joining to done", stay.due_ns, record.finished_ns)

    def _read_events(self) -> None:
        events = self._scheduler.events(self._since)
        self._since = events.next_sequence
        self.course.events_lost += events.lost
        for event in events.events:
            if event.target == "Admitted":
                self._admitted[event.number] = event.t_ns
            elif event.target in TERMINAL:
                self.course.ends[event.number] += 1

    def _sample(self, gone: int) -> None:
        for column, value in {"tenants": gone, **self._probe()}.items():
            self.course.grown.setdefault(column, []).append(value)


def ledger(scheduler: Scheduler) -> int:
    """The counts that a scheduler still has: bytes and shares reserved, unfinished tasks, partitions. 0 if all left."""
    stats: dict[str, Any] = scheduler.global_stats()
    counted = ("reserved_memory", "reserved_share_ppm", "queued", "admitted", "running", "suspended")
    return sum(stats[key] for key in counted) + len(scheduler.partitions.partition_ids())


def season_rows(count: int, rate: float) -> Iterator[BenchmarkResult]:
    """So many tenants at so many a second, when others have filled the heap and the history of ended tasks."""
    import pygpukit as gp
    from pygpukit.scheduler import Scheduler

    kernel = gp.jit(SOURCE, func="greet")
    with Scheduler() as scheduler:
        for _ in range(REMEMBERED):
            scheduler.submit(_nothing).result()
        Season(scheduler, kernel, 1, WARM_UP * count, 10 * rate).run()
        course = Season(scheduler, kernel, WARM_UP * count + 1, count, rate).run()
        left = ledger(scheduler)

    def figure(name: str, value: float, unit: str = "count", **more: Any) -> BenchmarkResult:
        return BenchmarkResult(name, CATEGORY, value=value, unit=unit, **more)

    yield figure("tenants that joined", course.joined, better="higher")
    for wait, us in course.waits_us.items():
        yield figure(f"{wait}, p50", percentile(us, 0.5), "us", iterations=len(us))
        yield figure(f"{wait}, p99", percentile(us, 0.99), "us", iterations=len(us), samples=us)
    yield figure("tasks lost", course.joined - len(course.ends))
    yield figure("tasks that ended twice", sum(times > 1 for times in course.ends.values()))
    yield figure("tasks stuck", course.stuck)
    yield figure("wrong results", course.wrong)
    yield figure("left in the ledger", left)
    yield figure("events overwritten unread", course.events_lost)
    for what, unit in UNITS.items():
        grown = course.grown[what]
        series = {"tenants": course.grown["tenants"], what: grown}
        yield figure(f"growth of {what}", grown[-1] - grown[0], unit, series=series)
    names = course.grown["interned names"]
    yield figure("interned names, a tenant", (names[-1] - names[0]) / course.joined)


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit.core.backend import ensure

    ensure()
    if not Path("/proc/self/statm").exists():
        yield Unavailable(CATEGORY, "there is no /proc here to tell what grows")
        return
    yield from season_rows(100 if quick else 1000, RATE)
