"""Suite `scheduler`: what tenants get of a device that they all want, by two meters, and what the gate costs one alone.

Every tenant launches kernels of its own length, a fixed number of multiply-adds on the whole device, as fast as it may.
The first meter is the scheduler's: device time between events. The second is the work: the kernels that the device was
given of each tenant, over the rate at which it runs them alone in the same run; the sum of these is the throughput
kept. Baselines: each alone, and all on plain streams, which keep more than all, since one kernel begins on the
multiprocessors that the last blocks of another leave. Work is submitted many launches a call, so that the interpreter's
share of a launch is not what is measured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

from .result import BenchmarkResult, Unavailable, from_samples
from .scheduler_load import Tenant, make_tenant, plain_loop, task_loop

CATEGORY = "scheduler"
TICK_S = 0.01
SETTLE_S = 0.3  # before a contest is measured: costs are learnt
CASES = {
    "20/50/20/10": (0.2, 0.5, 0.2, 0.1),
    "75/25": (0.75, 0.25),
    "30/70": (0.3, 0.7),
}
LENGTHS_US = {"cuda": (20.0, 150.0, 400.0, 1000.0), "sim": (200.0, 400.0, 800.0, 1600.0)}
ALONE_US = {"cuda": (20.0, 100.0), "sim": (200.0, 1000.0)}


@dataclass
class Tick:
    """Both meters at one moment."""

    host_s: float
    launches: tuple[int, ...]
    gpu_s: tuple[float, ...] = ()


@dataclass
class Run:
    """One contest of several tenants."""

    tenants: list[Tenant]
    ticks: list[Tick] = field(default_factory=list)

    def measured(self, seconds: float) -> list[list[float]]:
        """Shares of the device time that all had together, over windows of this length; a new window every tick."""
        return [_parts(first.gpu_s, last.gpu_s) for first, last in self._windows(seconds)]

    def worked(self, seconds: float) -> list[list[float]]:
        """The same by work: parts of what all were given, each in the time it takes alone."""
        return [_parts(self._work_s(first), self._work_s(last)) for first, last in self._windows(seconds)]

    def _work_s(self, tick: Tick) -> tuple[float, ...]:
        return tuple(n * tenant.kernel_us * 1e-6 for n, tenant in zip(tick.launches, self.tenants, strict=True))

    def kept(self) -> float:
        """All work, in the time it takes alone, over the time of the contest."""
        first, last = self.ticks[0], self.ticks[-1]
        return (sum(self._work_s(last)) - sum(self._work_s(first))) / (last.host_s - first.host_s)

    def whole(self) -> tuple[list[float], list[float]]:
        """Shares over the whole contest, by device time and by work."""
        first, last = self.ticks[0], self.ticks[-1]
        return _parts(first.gpu_s, last.gpu_s), _parts(self._work_s(first), self._work_s(last))

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


def contest(tenants: list[Tenant], shares: tuple[float, ...], seconds: float) -> Run:
    """All tenants at once under the scheduler, each with its share."""
    from ..scheduler import Scheduler

    run, stop = Run(tenants), threading.Event()
    with Scheduler(workers=len(tenants)) as scheduler:
        tasks = [
            scheduler.submit(task_loop, tenant, stop, bandwidth=share, name=tenant.name)
            for tenant, share in zip(tenants, shares, strict=True)
        ]

        def tick() -> Tick:
            given = scheduler.snapshot()["devices"][0]["tasks"]
            mine = [given[task.id] for task in tasks]
            now = time.perf_counter()
            return Tick(now, tuple(t["launches"] for t in mine), tuple(t["gpu_ns"] * 1e-9 for t in mine))

        _watch(run, tick, seconds, stop)
        for task in tasks:
            task.result()
    return run


def plain(tenants: list[Tenant], seconds: float) -> Run:
    """All tenants at once, each on a stream of its own, and nobody who shares out the device."""
    run, stop = Run(tenants), threading.Event()
    counts = [[0] for _ in tenants]
    threads = [
        threading.Thread(target=plain_loop, args=(tenant, stop, count))
        for tenant, count in zip(tenants, counts, strict=True)
    ]
    for thread in threads:
        thread.start()
    _watch(run, lambda: Tick(time.perf_counter(), tuple(count[0] for count in counts)), seconds, stop)
    for thread in threads:
        thread.join()
    return run


def _watch(run: Run, tick: Callable[[], Tick], seconds: float, stop: threading.Event) -> None:
    try:
        time.sleep(SETTLE_S)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            run.ticks.append(tick())
            time.sleep(TICK_S)
        run.ticks.append(tick())
    finally:
        stop.set()


def _errors(windows: list[list[float]], shares: tuple[float, ...]) -> list[float]:
    """Of each window the worst tenant's error in percentage points."""
    return [max(abs(got - share) for got, share in zip(window, shares, strict=True)) * 100 for window in windows]


def _percentile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def _error_row(name: str, case: str, errors: list[float], part: float) -> BenchmarkResult:
    params = {"shares": case}
    value = _percentile(errors, part)
    return BenchmarkResult(name, CATEGORY, params, value=value, unit="pp", samples=errors, iterations=len(errors))


def share_rows(case: str, tenants: list[Tenant], seconds: float, window_s: float) -> Iterator[BenchmarkResult]:
    """Shares of one case by both meters, and beside it on plain streams. window_s: the longest window, 1 s or less."""
    shares, params = CASES[case], {"shares": case}
    run, bare = contest(tenants, shares, seconds), plain(tenants, seconds / 3)
    measured = {window: _errors(run.measured(window), shares) for window in (0.01, 0.1, window_s)}
    long = f"{window_s:g} s"
    yield _error_row(f"worst share error over {long}", case, measured[window_s], 1)
    yield _error_row("share error over 100 ms, p99", case, measured[0.1], 0.99)
    yield _error_row("share error over 10 ms, p99", case, measured[0.01], 0.99)
    yield _error_row(f"worst share error over {long}, by work", case, _errors(run.worked(window_s), shares), 1)
    ours, theirs = run.whole()
    apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) * 100
    yield BenchmarkResult("the two meters apart", CATEGORY, params, value=apart, unit="pp")
    for tenant, by_time, by_work in zip(tenants, ours, theirs, strict=True):
        mine = {**params, "tenant": tenant.name}
        yield BenchmarkResult("share, device time", CATEGORY, mine, value=by_time * 100, unit="%", better="higher")
        yield BenchmarkResult("share, work", CATEGORY, mine, value=by_work * 100, unit="%", better="higher")
    kept, kept_plain = run.kept() * 100, bare.kept() * 100
    yield BenchmarkResult("throughput kept", CATEGORY, params, value=kept, unit="%", better="higher")
    yield BenchmarkResult("throughput, plain streams", CATEGORY, params, value=kept_plain, unit="%", better="higher")
    beside = 100 * kept / kept_plain
    yield BenchmarkResult("throughput over plain streams", CATEGORY, params, value=beside, unit="%", better="higher")
    errors = _errors(bare.worked(min(window_s, seconds / 6)), shares)
    yield _error_row("worst share error on plain streams", case, errors, 1)


def _timed(tenant: Tenant, launches: int) -> float:
    from .._core import native

    native.current_stream().synchronize()
    begin = time.perf_counter()
    tenant.launch(launches)
    native.current_stream().synchronize()
    return (time.perf_counter() - begin) / launches


def cost_rows(tenants: list[Tenant], lengths_us: tuple[float, ...], quick: bool) -> Iterator[BenchmarkResult]:
    """What the gate costs a tenant that has the device to itself, in turn with the same program without it."""
    from .._core import native
    from ..scheduler import Scheduler

    before = native.current_stream()
    for tenant, length_us in zip(tenants, lengths_us, strict=True):
        launches = max(20, int((20_000 if quick else 100_000) / tenant.kernel_us))
        costs, bare = [], []
        scheduler = Scheduler()
        try:
            for _ in range(5 if quick else 15):
                native.set_current_stream(native.Stream())
                without = _timed(tenant, launches)
                native.set_current_stream(before)
                task = scheduler.submit(_timed, tenant, launches, bandwidth=0.5)
                scheduler.step()
                costs.append((task.result() / without - 1) * 100)
                bare.append(without * 1e6)
        finally:
            native.set_current_stream(before)
            scheduler.close()
        params = {"kernel_us": length_us}
        yield from_samples("one tenant, cost of the gate", CATEGORY, costs, "%", params=params)
        yield from_samples("one tenant, kernel without it", CATEGORY, bare, "us", params=params)


def _requests(tenant: Tenant, kernels: int, count: int, pause_s: float) -> list[float]:
    """Seconds from each request's submission to its end, one after the other with a pause between."""
    from .._core import native

    stream, took = native.current_stream(), []
    for _ in range(count):
        begin = time.perf_counter()
        tenant.launch(kernels)
        stream.synchronize()
        took.append(time.perf_counter() - begin)
        time.sleep(pause_s)
    return took


def latency_rows(
    asking: Tenant, loads: list[Tenant], kernels: int, count: int, pause_s: float
) -> Iterator[BenchmarkResult]:
    """Requests of a tenant with nearly the whole device beside a best-effort one that always wants it."""
    from ..scheduler import Scheduler

    def asked(load: Tenant | None) -> list[float]:
        stop = threading.Event()
        with Scheduler(workers=2) as scheduler:
            storm = None
            if load is not None:
                storm = scheduler.submit(task_loop, load, stop, policy="best_effort", name=load.name)
                time.sleep(SETTLE_S)
            task = scheduler.submit(_requests, asking, kernels, count, pause_s, bandwidth=0.9, policy="burstable")
            try:
                return [s * 1e6 for s in task.result()]
            finally:
                stop.set()
                if storm is not None:
                    storm.result()

    def row(name: str, params: dict[str, str], us: list[float]) -> BenchmarkResult:
        value = _percentile(us, 0.99)
        return BenchmarkResult(name, CATEGORY, params, value=value, unit="us", samples=us, iterations=len(us))

    asked(None)  # the first launches of each kind are measured one by one
    alone = asked(None)
    yield row("request alone, p99", {}, alone)
    for load in loads:
        params = {"load": load.name}
        us = asked(load)
        yield row("request beside a storm, p99", params, us)
        ratio = _percentile(us, 0.99) / _percentile(alone, 0.99)
        yield BenchmarkResult("request beside a storm over alone, p99", CATEGORY, params, value=ratio, unit="x")
        middle = median(us) / median(alone)
        yield BenchmarkResult("request beside a storm over alone, median", CATEGORY, params, value=middle, unit="x")


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from .._core import native
    from ..core.backend import ensure

    ensure()
    backend = str(native.backend_name())
    seconds, window_s = (1.5, 0.5) if quick else (12.0, 1.0)
    tenants = [make_tenant(f"work_{length:g}us", length) for length in LENGTHS_US[backend]]
    for case, shares in CASES.items():
        yield from share_rows(case, tenants if len(shares) == 4 else tenants[1:3], seconds, window_s)
    for tenant in tenants:
        params = {"tenant": tenant.name}
        yield BenchmarkResult("kernel alone", CATEGORY, params, value=tenant.kernel_us, unit="us")
    lengths = ALONE_US[backend]
    yield from cost_rows([make_tenant(f"alone_{length:g}us", length) for length in lengths], lengths, quick)
    asking = make_tenant("request", 100.0)
    loads = [
        make_tenant("multiply_adds", 1000.0, waves=32),
        make_tenant("storm", 5.0),
        make_tenant("triad", 200.0, waves=32, of_memory=True),
        make_tenant("one_wave", 150.0),  # nothing gets in before its blocks end
    ]
    yield from latency_rows(asking, loads, 10, 100 if quick else 1000, 0.002)
