"""Requests of a tenant with nearly the whole device, alone and beside best-effort tenants that always want it.

Beside each load the same requests are measured under the scheduler, on plain streams, and with stream priorities only:
the request's stream the most urgent that the driver has, the load's the least.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from statistics import median

from .result import BenchmarkResult, percentile
from .scheduler_contest import MOST_URGENT, SETTLE_S
from .scheduler_load import Tenant, plain_loop, task_loop

CATEGORY = "scheduler"
KERNELS = 10  # of a request
PAUSE_S = 0.002
BARE_LIMIT_S = 1.5
BARE = {"plain streams": 0, "priorities only": MOST_URGENT}


def _requests(tenant: Tenant, count: int, limit_s: float) -> list[float]:
    """Microseconds from each request's submission to its end, one after the other with a pause between; fewer than
    count where the time is up before."""
    from .._core import native

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


def _gated(asking: Tenant, load: Tenant | None, count: int) -> list[float]:
    from ..scheduler import Scheduler

    stop = threading.Event()
    with Scheduler(workers=2) as scheduler:
        storm = None
        if load is not None:
            storm = scheduler.submit(task_loop, load, stop, policy="best_effort", name=load.name)
            time.sleep(SETTLE_S)
        task = scheduler.submit(_requests, asking, count, 60.0, bandwidth=0.9, policy="burstable")
        try:
            found: list[float] = task.result()
        finally:
            stop.set()
            if storm is not None:
                storm.result()
    return found


def _ungated(asking: Tenant, load: Tenant, priority: int, count: int) -> list[float]:
    from .._core import native

    stop, before = threading.Event(), native.current_stream()
    storm = threading.Thread(target=plain_loop, args=(load, stop, [0], 0))
    storm.start()
    native.set_current_stream(native.Stream(priority))
    try:
        time.sleep(SETTLE_S)
        return _requests(asking, count, BARE_LIMIT_S)
    finally:
        native.set_current_stream(before)
        stop.set()
        storm.join()


def latency_rows(asking: Tenant, loads: list[Tenant], count: int) -> Iterator[BenchmarkResult]:
    """The 99th percentiles in microseconds, with all samples, and what they are of the request alone."""

    def row(name: str, params: dict[str, str], us: list[float]) -> BenchmarkResult:
        value = percentile(us, 0.99)
        return BenchmarkResult(name, CATEGORY, params, value=value, unit="us", samples=us, iterations=len(us))

    _gated(asking, None, count)  # the first launches of each kind are measured one by one
    alone = _gated(asking, None, count)
    yield row("request alone, p99", {}, alone)
    for load in loads:
        params = {"load": load.name}
        us = _gated(asking, load, count)
        yield row("request beside a storm, p99", params, us)
        ratio = percentile(us, 0.99) / percentile(alone, 0.99)
        yield BenchmarkResult("request beside a storm over alone, p99", CATEGORY, params, value=ratio, unit="x")
        middle = median(us) / median(alone)
        yield BenchmarkResult("request beside a storm over alone, median", CATEGORY, params, value=middle, unit="x")
        for streams, priority in BARE.items():
            us = _ungated(asking, load, priority, count)
            yield row(f"request beside a storm, {streams}, p99", params, us)
