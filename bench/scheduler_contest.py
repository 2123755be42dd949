"""Contests: tenants that all want one device, with the scheduler or on bare streams, and both meters over time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .scheduler_load import TOP_PRIORITY, Tenant, plain_loop, task_loop

TICK_S = 0.01
SETTLE_S = 0.3  # before a contest is measured: costs are learnt


@dataclass
class Tick:
    """Both meters at one moment. launches: that ended, as the kernels count them. gpu_s: device time, as the scheduler
    counts it; empty on bare streams."""

    host_s: float
    launches: tuple[int, ...]
    gpu_s: tuple[float, ...] = ()


@dataclass
class Run:
    """One contest of several tenants: their names, how long a kernel of each takes alone, and the meters over time."""

    names: list[str]
    kernel_us: list[float]
    ticks: list[Tick] = field(default_factory=list)

    def measured(self, seconds: float) -> list[list[float]]:
        """Shares of the device time that all had together, over windows of this length; a new window every tick."""
        return [_parts(first.gpu_s, last.gpu_s) for first, last in self._windows(seconds)]

    def worked(self, seconds: float) -> list[list[float]]:
        """The same by work: parts of all kernels that ended, each in the time it takes alone."""
        return [_parts(self._work_s(first), self._work_s(last)) for first, last in self._windows(seconds)]

    def ends_s(self, seconds: float) -> list[float]:
        """When each of these windows ended, from the start of the contest."""
        return [last.host_s - self.ticks[0].host_s for _, last in self._windows(seconds)]

    def _work_s(self, tick: Tick) -> tuple[float, ...]:
        return tuple(n * kernel_us * 1e-6 for n, kernel_us in zip(tick.launches, self.kernel_us, strict=True))

    def kept(self) -> float:
        """All work, in the time it takes alone, over the time of the contest."""
        first, last = self.ticks[0], self.ticks[-1]
        return (sum(self._work_s(last)) - sum(self._work_s(first))) / (last.host_s - first.host_s)

    def whole(self) -> tuple[list[float], list[float]]:
        """Shares over the whole contest, by device time and by work."""
        first, last = self.ticks[0], self.ticks[-1]
        return _parts(first.gpu_s, last.gpu_s), _parts(self._work_s(first), self._work_s(last))

    def series(self) -> dict[str, list[float]]:
        """The meters for a report: whole microseconds and launches since the first tick, which from_series() reads."""
        first = self.ticks[0]
        columns: dict[str, list[float]] = {"t_us": [round((tick.host_s - first.host_s) * 1e6) for tick in self.ticks]}
        for i, name in enumerate(self.names):
            columns[f"launches {name}"] = [tick.launches[i] - first.launches[i] for tick in self.ticks]
            if first.gpu_s:
                columns[f"gpu_us {name}"] = [round((tick.gpu_s[i] - first.gpu_s[i]) * 1e6) for tick in self.ticks]
        return columns

    @classmethod
    def from_series(cls, columns: dict[str, list[float]], kernel_us: dict[str, float]) -> Run:
        """The contest that series() came from. kernel_us: of each tenant, at least."""
        names = [key.partition(" ")[2] for key in columns if key.startswith("launches ")]
        launches = zip(*(columns[f"launches {name}"] for name in names), strict=True)
        metered = f"gpu_us {names[0]}" in columns
        gpu = zip(*(columns[f"gpu_us {name}"] for name in names), strict=True) if metered else None
        run = cls(names, [kernel_us[name] for name in names])
        for t_us, counts in zip(columns["t_us"], launches, strict=True):
            gpu_s = tuple(us * 1e-6 for us in next(gpu)) if gpu is not None else ()
            run.ticks.append(Tick(t_us * 1e-6, tuple(int(count) for count in counts), gpu_s))
        return run

    def _windows(self, seconds: float) -> Iterator[tuple[Tick, Tick]]:
        last = 0
        for first in self.ticks:
            while last < len(self.ticks) and self.ticks[last].host_s - first.host_s < seconds:
                last += 1
            if last == len(self.ticks):
                return
            yield first, self.ticks[last]


def _parts(before: tuple[float, ...], after: tuple[float, ...]) -> list[float]:
    grown = [b - a for a, b in zip(before, after, strict=True)]
    total = sum(grown)
    return [part / total if total > 0 else 0.0 for part in grown]


def errors_pp(windows: list[list[float]], shares: tuple[float, ...]) -> list[float]:
    """Of each window the worst tenant's error in percentage points."""
    return [max(abs(got - share) for got, share in zip(window, shares, strict=True)) * 100 for window in windows]


def contest(tenants: list[Tenant], shares: tuple[float, ...], seconds: float) -> Run:
    """All tenants at once under the scheduler, each with its share."""
    from pygpukit.scheduler import Scheduler

    run, stop, ended = _run(tenants), threading.Event(), _ends(tenants)
    with Scheduler(workers=len(tenants)) as scheduler:
        tasks = [
            scheduler.submit(task_loop, tenant, stop, bandwidth=share, name=tenant.name)
            for tenant, share in zip(tenants, shares, strict=True)
        ]

        def tick() -> Tick:
            running = scheduler.snapshot()["devices"][0]["tasks"]
            return Tick(time.perf_counter(), ended(), tuple(running[task.id]["gpu_ns"] * 1e-9 for task in tasks))

        def at_work() -> bool:
            return all(count or task.done() for count, task in zip(ended(), tasks, strict=True))

        _watch(run, at_work, tick, seconds, stop)
        for task in tasks:
            task.result()
    return run


def bare(tenants: list[Tenant], priorities: list[int], seconds: float) -> Run:
    """All tenants at once, each on a stream of its own with a priority of the driver, and nobody who shares out the
    device."""
    run, stop, ended = _run(tenants), threading.Event(), _ends(tenants)
    threads = [
        threading.Thread(target=plain_loop, args=(tenant, stop, priority))
        for tenant, priority in zip(tenants, priorities, strict=True)
    ]
    for thread in threads:
        thread.start()

    def at_work() -> bool:
        return all(count or not thread.is_alive() for count, thread in zip(ended(), threads, strict=True))

    _watch(run, at_work, lambda: Tick(time.perf_counter(), ended()), seconds, stop)
    for thread in threads:
        thread.join()
    return run


def priorities_of(shares: tuple[float, ...]) -> list[int]:
    """Stream priorities in the order of the shares, the largest share the most urgent: all that priorities can tell."""
    ranks = sorted(set(shares))
    return [max(TOP_PRIORITY, -ranks.index(share)) for share in shares]


def _run(tenants: list[Tenant]) -> Run:
    return Run([tenant.name for tenant in tenants], [tenant.kernel_us for tenant in tenants])


def _ends(tenants: list[Tenant]) -> Callable[[], tuple[int, ...]]:
    """Counts the launches of each that have ended from now on."""
    before = [tenant.ended() for tenant in tenants]
    return lambda: tuple(tenant.ended() - count for tenant, count in zip(tenants, before, strict=True))


def _watch(
    run: Run, at_work: Callable[[], bool], tick: Callable[[], Tick], seconds: float, stop: threading.Event
) -> None:
    """Ticks for so many seconds, from a while after all are at work."""
    try:
        while not at_work():
            time.sleep(TICK_S)
        time.sleep(SETTLE_S)
        run.ticks.append(tick())
        while run.ticks[-1].host_s - run.ticks[0].host_s < seconds:
            time.sleep(TICK_S)
            run.ticks.append(tick())
    finally:
        stop.set()
