"""Suite `partitions`: multiprocessors of their own: how many for a share, what changes cost, what is isolated.

A request is a row of kernels and the wait for the last, by a task of the partition; beside it a task of no partition
launches without end, kernels that compute or kernels that move memory, on the multiprocessors that are left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from statistics import median

from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

from .scheduler_load import Tenant, make_tenant, task_loop

CATEGORY = "partitions"
SHARES = (0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.75)
SHARE = 0.2
SETTLE_S = 0.3
LENGTH_US = 150.0
KERNELS = 20


def rounding_rows() -> Iterator[BenchmarkResult]:
    """The reservation that is given for what is asked."""
    from pygpukit.scheduler import Scheduler

    scheduler = Scheduler(start=False)
    for share in SHARES:
        scheduler.create_partition("p", bandwidth=share, isolation="sm")
        partition = scheduler.partitions.get("p")
        scheduler.partitions.delete_partition("p")
        assert partition is not None
        params = {"asked": f"{share:.3f}"}
        yield BenchmarkResult("multiprocessors", CATEGORY, params, value=partition.sms, unit="SMs")
        yield BenchmarkResult("given over asked", CATEGORY, params, value=(partition.sm_share - share) * 100, unit="pp")


def change_rows(quick: bool) -> Iterator[BenchmarkResult]:
    """The time that the calls take, with no task under way."""
    from pygpukit.scheduler import Scheduler

    scheduler = Scheduler(start=False)
    steps: dict[str, Callable[[], object]] = {
        "create": lambda: scheduler.create_partition("p", bandwidth=SHARE, isolation="sm"),
        "resize": lambda: scheduler.resize_partition("p", bandwidth=2 * SHARE, isolation="sm"),
        "delete": lambda: scheduler.partitions.delete_partition("p"),
    }
    took: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(5 if quick else 20):
        for name, step in steps.items():
            begin = time.perf_counter()
            step()
            took[name].append((time.perf_counter() - begin) * 1e3)
    for name, samples in took.items():
        yield from_samples(f"{name} a partition", CATEGORY, samples, "ms")


def _requests(tenant: Tenant, count: int) -> list[float]:
    """Microseconds of each of so many rows of kernels."""
    from pygpukit._core import native

    stream, took = native.current_stream(), []
    for _ in range(count):
        begin = time.perf_counter()
        tenant.launch(KERNELS)
        stream.synchronize()
        took.append((time.perf_counter() - begin) * 1e6)
    return took


def isolation_rows(count: int) -> Iterator[BenchmarkResult]:
    """Requests in a partition alone and beside each load, with and without multiprocessors of its own."""
    from pygpukit.scheduler import Scheduler

    kinds = {"compute": False, "memory": True}
    asking = {kind: make_tenant(f"asks_{kind}", LENGTH_US, of_memory=of) for kind, of in kinds.items()}
    loads = {kind: make_tenant(f"load_{kind}", LENGTH_US, of_memory=of) for kind, of in kinds.items()}

    def asked(kind: str, load: Tenant | None) -> list[float]:
        stop = threading.Event()
        with Scheduler(workers=2) as scheduler:
            # What it may borrow keeps its limit out of the figures.
            scheduler.create_partition("p", bandwidth=SHARE, borrow_bandwidth=SHARE, isolation="sm")
            storm = None if load is None else scheduler.submit(task_loop, load, stop)
            time.sleep(SETTLE_S)
            task = scheduler.submit(_requests, asking[kind], count, partition="p")
            try:
                times: list[float] = task.result()
            finally:
                stop.set()
                if storm is not None:
                    storm.result()
            scheduler.partitions.delete_partition("p")
        return times

    for kind in kinds:
        asked(kind, None)
        alone = asked(kind, None)
        yield from_samples("request alone", CATEGORY, alone, "us", params={"of": kind})
        for other, load in loads.items():
            params = {"of": kind, "beside": other}
            us = asked(kind, load)
            yield from_samples("request beside a load", CATEGORY, us, "us", params=params)
            ratio = median(us) / median(alone)
            yield BenchmarkResult("request beside a load over alone", CATEGORY, params, value=ratio, unit="x")


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit.core.backend import ensure
    from pygpukit.core.errors import InvalidSpecError
    from pygpukit.scheduler import Scheduler

    ensure()
    try:
        probe = Scheduler(start=False)
        probe.create_partition("p", bandwidth=SHARE, isolation="sm")
        probe.partitions.clear()
    except InvalidSpecError as error:
        yield Unavailable(f"{CATEGORY}/multiprocessors", str(error))
        return
    yield from rounding_rows()
    yield from change_rows(quick)
    yield from isolation_rows(30 if quick else 300)
