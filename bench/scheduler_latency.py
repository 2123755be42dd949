"""Requests of a tenant, alone and beside best-effort tenants that always want the device.

A request is a row of kernels, about 1 ms of the device, and the wait for the last. The tenant that asks has nearly the
whole device and may have more of it (burstable), or has a share that is its limit too (guaranteed): each class is
measured against its own requests alone, just before. Closed loop: the next request comes a pause after the last one's
end. Open loop: requests come when they come, and are timed from the moment when they were due.

Beside each load the burstable tenant's requests are measured on plain streams too, and with stream priorities only: the
request's stream the most urgent that the driver has, the load's the least.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean, median
from typing import Any

from pygpukit.benchmark.result import BenchmarkResult, percentile

from .scheduler_contest import SETTLE_S
from .scheduler_load import TOP_PRIORITY, Tenant, plain_loop, task_loop

CATEGORY = "scheduler"
KERNELS = 10  # of a request
PAUSE_S = 0.002
LIMIT_S = 60.0
BARE_LIMIT_S = 0.8
BARE = {"plain streams": 0, "priorities only": TOP_PRIORITY}
SHARES = (0.9, 0.5)  # of guaranteed tenants: a request and its pause need a third of the device
OPEN_SHARE = 0.9
OPEN_LOADS = ("multiply_adds", "storm")
RATES = {"20%": 0.2, "50%": 0.5}  # arrivals, of the rate of requests alone
SEED = 5
AWAKE_S = 0.0002  # before a request is due: sleeps end late
PARTS = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}

Requests = Callable[[Tenant], list[float]]


@dataclass
class Seen:
    """Requests of a tenant: microseconds of each, and what went on from the first to the last."""

    us: list[float]
    seconds: float
    asked: int  # kernels of the requests
    loaded: int  # of the load
    held_us: float  # by the tenant's own limit, for each request

    def p99(self) -> float:
        return percentile(self.us, 0.99)


def closed_loop(count: int, limit_s: float = LIMIT_S) -> Requests:
    """One after the other with a pause between, each timed from its submission to its end; fewer than count where the
    time is up before."""

    def requests(tenant: Tenant) -> list[float]:
        from pygpukit._core import native

        stream = native.current_stream()
        took: list[float] = []
        end = time.perf_counter() + limit_s
        while len(took) < count and (not took or time.perf_counter() < end):
            begin = time.perf_counter()
            tenant.launch(KERNELS)
            stream.synchronize()
            took.append((time.perf_counter() - begin) * 1e6)
            time.sleep(PAUSE_S)
        return took

    return requests


def arrivals(count: int, per_s: float) -> list[float]:
    """When requests are due, in seconds from the first's beginning: at random and without memory (Poisson), the same
    whenever it is asked."""
    draw = random.Random(SEED)
    return list(accumulate(draw.expovariate(per_s) for _ in range(count)))


def open_loop(due_s: list[float]) -> Requests:
    """Each timed from when it was due to its end: one that waits for those before it is late by that, too."""

    def requests(tenant: Tenant) -> list[float]:
        from pygpukit._core import native

        stream = native.current_stream()
        took: list[float] = []
        begin = time.perf_counter()
        for due in due_s:
            while (left := begin + due - time.perf_counter()) > 0:
                time.sleep(max(0.0, left - AWAKE_S))
            tenant.launch(KERNELS)
            stream.synchronize()
            took.append((time.perf_counter() - begin - due) * 1e6)
        return took

    return requests


def _gated(asking: Tenant, load: Tenant | None, requests: Requests, bandwidth: float, policy: str) -> Seen:
    from pygpukit.scheduler import Scheduler

    def ended() -> tuple[int, int]:
        return asking.ended(), 0 if load is None else load.ended()

    stop = threading.Event()
    with Scheduler(workers=2) as scheduler:
        storm = None
        if load is not None:
            storm = scheduler.submit(task_loop, load, stop, policy="best_effort", name=load.name)
            time.sleep(SETTLE_S)
        begin, before = time.perf_counter(), ended()
        task = scheduler.submit(requests, asking, memory="1MB", bandwidth=bandwidth, policy=policy)
        try:
            us: list[float] = task.result()
            seconds, after = time.perf_counter() - begin, ended()
            held_us = task.stats().throttled_ns / 1e3 / len(us)
        finally:
            stop.set()
            if storm is not None:
                storm.result()
    return Seen(us, seconds, after[0] - before[0], after[1] - before[1], held_us)


def _ungated(asking: Tenant, load: Tenant, priority: int, count: int) -> list[float]:
    from pygpukit._core import native

    stop, before = threading.Event(), native.current_stream()
    storm = threading.Thread(target=plain_loop, args=(load, stop, 0))
    storm.start()
    native.set_current_stream(native.Stream(priority))
    try:
        time.sleep(SETTLE_S)
        return closed_loop(count, BARE_LIMIT_S)(asking)
    finally:
        native.set_current_stream(before)
        stop.set()
        storm.join()


def _row(name: str, params: dict[str, Any], us: list[float], part: float = 0.99) -> BenchmarkResult:
    """A percentile in microseconds, with all samples."""
    return BenchmarkResult(
        name, CATEGORY, params, value=percentile(us, part), unit="us", samples=us, iterations=len(us)
    )


def _ratio(name: str, params: dict[str, Any], value: float) -> BenchmarkResult:
    return BenchmarkResult(name, CATEGORY, params, value=value, unit="x")


def latency_rows(asking: Tenant, loads: list[Tenant], count: int) -> Iterator[BenchmarkResult]:
    """The burstable tenant's 99th percentiles in microseconds, what they are of the request alone, and those without a
    scheduler."""
    served = (closed_loop(count), 0.9, "burstable")
    _gated(asking, None, closed_loop(min(count, 100)), 0.9, "burstable")  # first launches are measured one by one
    alone = _gated(asking, None, *served)
    yield _row("request alone, p99", {}, alone.us)
    for load in loads:
        params = {"load": load.name}
        seen = _gated(asking, load, *served)
        yield _row("request beside a storm, p99", params, seen.us)
        yield _ratio("request beside a storm over alone, p99", params, seen.p99() / alone.p99())
        middle = median(seen.us) / median(alone.us)
        yield _ratio("request beside a storm over alone, median", params, middle)
        for streams, priority in BARE.items():
            us = _ungated(asking, load, priority, count)
            yield _row(f"request beside a storm, {streams}, p99", params, us)


def guaranteed_rows(asking: Tenant, loads: list[Tenant], count: int) -> Iterator[BenchmarkResult]:
    """The same for guaranteed tenants, and the throughput that is kept of both: kernels that ended, each in the time it
    takes alone and back to back, over the time that passed."""
    for share in SHARES:
        served = (closed_loop(count), share, "guaranteed")
        alone = _gated(asking, None, *served)
        yield _row("guaranteed request alone, p99", {"bandwidth": share}, alone.us)
        yield _held(share, None, alone)
        for load in loads:
            params = {"bandwidth": share, "load": load.name}
            both, before = (asking, load), [asking.alone_us(), load.alone_us()]
            seen = _gated(asking, load, *served)
            rates = [fmean((us, tenant.alone_us())) for us, tenant in zip(before, both, strict=True)]
            yield _row("guaranteed request beside a load, p99", params, seen.us)
            yield _ratio("guaranteed request beside a load over alone, p99", params, seen.p99() / alone.p99())
            middle = median(seen.us) / median(alone.us)
            yield _ratio("guaranteed request beside a load over alone, median", params, middle)
            yield _held(share, load, seen)
            kept = (seen.asked * rates[0] + seen.loaded * rates[1]) * 1e-4 / seen.seconds
            yield BenchmarkResult("total throughput kept", CATEGORY, params, value=kept, unit="%", better="higher")


def _held(share: float, load: Tenant | None, seen: Seen) -> BenchmarkResult:
    params = {"bandwidth": share, "load": "none" if load is None else load.name}
    return BenchmarkResult("guaranteed request held by its limit", CATEGORY, params, value=seen.held_us, unit="us")


def open_loop_rows(asking: Tenant, loads: list[Tenant], count: int) -> Iterator[BenchmarkResult]:
    """A guaranteed tenant's requests by a schedule, the same alone and beside each load. Only the rows of the 99th
    percentile hold the samples."""

    def rows(name: str, params: dict[str, Any], us: list[float]) -> Iterator[BenchmarkResult]:
        kept = [round(took, 1) for took in us]
        for label, part in PARTS.items():
            row = _row(f"{name}, {label}", params, kept, part)
            if label != "p99":
                row.samples = []
            yield row

    rate_alone = 1e6 / median(_gated(asking, None, closed_loop(min(count, 200)), OPEN_SHARE, "guaranteed").us)
    for rate, part in RATES.items():
        served = (open_loop(arrivals(count, part * rate_alone)), OPEN_SHARE, "guaranteed")
        alone = _gated(asking, None, *served)
        yield from rows("open-loop request alone", {"rate": rate}, alone.us)
        for load in loads:
            if load.name not in OPEN_LOADS:
                continue
            params = {"load": load.name, "rate": rate}
            seen = _gated(asking, load, *served)
            yield from rows("open-loop request beside a load", params, seen.us)
            for label, point in PARTS.items():
                over = percentile(seen.us, point) / percentile(alone.us, point)
                yield _ratio(f"open-loop request beside a load over alone, {label}", params, over)
