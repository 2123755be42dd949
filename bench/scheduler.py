"""Suite `scheduler`: what tenants get of a device that they all want, by two meters, and what the gate costs one alone.

Every tenant launches kernels of its own length, a fixed number of multiply-adds on the whole device, as fast as it may.
The first meter is the scheduler's: device time between events. The second, in which the scheduler has no hand, is the
work: the kernels of each tenant that ended, as they count in device memory, over the rate at which the device runs them
alone just before and after, since its clocks move; the sum of these is the throughput kept. Baselines: each alone; all
on plain streams, which keep more than all, since one kernel begins on the multiprocessors that the last blocks of
another leave; and all on streams with priorities in the order of the shares.
Work is submitted many launches a call, so that the interpreter's share of a launch is not what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import fmean

from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples, percentile

from .scheduler_contest import bare, contest, errors_pp, priorities_of
from .scheduler_latency import guaranteed_rows, latency_rows, open_loop_rows
from .scheduler_load import Tenant, make_tenant

CATEGORY = "scheduler"
CASES = {
    "20/50/20/10": (0.2, 0.5, 0.2, 0.1),
    "75/25": (0.75, 0.25),
    "30/70": (0.3, 0.7),
}
SECONDS = {"20/50/20/10": 10.0, "75/25": 4.0, "30/70": 4.0}
LENGTHS_US = {"cuda": (20.0, 150.0, 400.0, 1000.0), "sim": (200.0, 400.0, 800.0, 1600.0)}
ALONE_US = {"cuda": (20.0, 100.0), "sim": (200.0, 1000.0)}
LIMITS = {"one tenant": None, "one limited tenant": 0.999}


def _error_row(name: str, case: str, errors: list[float], part: float) -> BenchmarkResult:
    """The series of the contest's "throughput" row hold what the errors come from."""
    params = {"shares": case}
    value = percentile(errors, part)
    return BenchmarkResult(name, CATEGORY, params, value=value, unit="pp", iterations=len(errors))


def share_rows(
    case: str, tenants: list[Tenant], seconds: float, window_s: float
) -> Iterator[BenchmarkResult | Unavailable]:
    """Shares of one case by both meters, and beside it without the scheduler. window_s: the longest window, 1 s or
    less."""
    shares, params = CASES[case], {"shares": case}
    levels = {"plain streams": [0] * len(tenants), "priorities only": priorities_of(shares)}
    before = [tenant.alone_us() for tenant in tenants]
    run = contest(tenants, shares, seconds)
    bare_runs = {streams: bare(tenants, priorities, seconds / 4) for streams, priorities in levels.items()}
    after = [tenant.alone_us() for tenant in tenants]
    alone = [fmean(both) for both in zip(before, after, strict=True)]
    for each in (run, *bare_runs.values()):
        each.kernel_us = alone
    measured = {window: errors_pp(run.measured(window), shares) for window in (0.01, 0.1, window_s)}
    long = f"{window_s:g} s"
    yield _error_row(f"worst share error over {long}", case, measured[window_s], 1)
    yield _error_row("share error over 100 ms, p99", case, measured[0.1], 0.99)
    yield _error_row("share error over 10 ms, p99", case, measured[0.01], 0.99)
    yield _error_row(f"worst share error over {long}, by work", case, errors_pp(run.worked(window_s), shares), 1)
    yield _error_row("share error over 100 ms, by work, p99", case, errors_pp(run.worked(0.1), shares), 0.99)
    ours, theirs = run.whole()
    apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) * 100
    yield BenchmarkResult("the two meters apart", CATEGORY, params, value=apart, unit="pp")
    for tenant, by_time, by_work in zip(tenants, ours, theirs, strict=True):
        mine = {**params, "tenant": tenant.name}
        yield BenchmarkResult("share, device time", CATEGORY, mine, value=by_time * 100, unit="%", better="higher")
        yield BenchmarkResult("share, work", CATEGORY, mine, value=by_work * 100, unit="%", better="higher")
    kept = run.kept() * 100
    yield BenchmarkResult(
        "throughput kept", CATEGORY, params, value=kept, unit="%", better="higher", series=run.series()
    )
    for streams, run in bare_runs.items():
        kept_bare = run.kept() * 100
        yield BenchmarkResult(
            f"throughput, {streams}", CATEGORY, params, value=kept_bare, unit="%", better="higher", series=run.series()
        )
        if kept_bare == 0:
            reason = f"no kernel of anybody ended on {streams} in {seconds / 4:g} s"
            for name in (f"throughput over {streams}", f"worst share error, {streams}"):
                yield Unavailable(f"{CATEGORY}/{name}[shares={case}]", reason)
            continue
        beside = 100 * kept / kept_bare
        yield BenchmarkResult(f"throughput over {streams}", CATEGORY, params, value=beside, unit="%", better="higher")
        errors = errors_pp(run.worked(min(window_s, seconds / 8)), shares)
        yield _error_row(f"worst share error, {streams}", case, errors, 1)
    for tenant, kernel_us, first, last in zip(tenants, alone, before, after, strict=True):
        mine = {**params, "tenant": tenant.name}
        yield BenchmarkResult("kernel alone", CATEGORY, mine, value=kernel_us, unit="us", samples=[first, last])


def _timed(tenant: Tenant, launches: int) -> float:
    from pygpukit._core import native

    native.current_stream().synchronize()
    begin = time.perf_counter()
    tenant.launch(launches)
    native.current_stream().synchronize()
    return (time.perf_counter() - begin) / launches


def cost_rows(tenants: list[Tenant], lengths_us: tuple[float, ...], quick: bool) -> Iterator[BenchmarkResult]:
    """The cost of the gate to a tenant that has the device to itself, in turn with the same program without it: one
    has a promise, and one that has a limit too, of which every launch is measured. The limit holds nobody back here."""
    from pygpukit._core import native
    from pygpukit.scheduler import Scheduler

    before = native.current_stream()
    for tenant, length_us in zip(tenants, lengths_us, strict=True):
        launches = max(20, int((20_000 if quick else 100_000) / tenant.kernel_us))
        bare = []
        costs: dict[str, list[float]] = {who: [] for who in LIMITS}
        scheduler = Scheduler(start=False)
        try:
            for _ in range(5 if quick else 15):
                for who, limit in LIMITS.items():
                    native.set_current_stream(native.Stream())
                    without = _timed(tenant, launches)
                    native.set_current_stream(before)
                    task = scheduler.submit(_timed, tenant, launches, bandwidth=0.5, bandwidth_limit=limit)
                    scheduler.step()
                    costs[who].append((task.result() / without - 1) * 100)
                    bare.append(without * 1e6)
        finally:
            native.set_current_stream(before)
            scheduler.close()
        params = {"kernel_us": length_us}
        for who in LIMITS:
            yield from_samples(f"{who}, cost of the gate", CATEGORY, costs[who], "%", params=params)
        yield from_samples("one tenant, kernel without it", CATEGORY, bare, "us", params=params)


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit._core import native
    from pygpukit.core.backend import ensure

    ensure()
    backend = str(native.backend_name())
    seconds, window_s = (dict.fromkeys(CASES, 1.5), 0.5) if quick else (SECONDS, 1.0)
    tenants = [make_tenant(f"work_{length:g}us", length) for length in LENGTHS_US[backend]]
    for case, shares in CASES.items():
        yield from share_rows(case, tenants if len(shares) == 4 else tenants[1:3], seconds[case], window_s)
    lengths = ALONE_US[backend]
    yield from cost_rows([make_tenant(f"alone_{length:g}us", length) for length in lengths], lengths, quick)
    asking = make_tenant("request", 100.0)
    loads = [
        make_tenant("multiply_adds", 1000.0, waves=32),
        make_tenant("storm", 5.0),
        make_tenant("triad", 200.0, waves=32, of_memory=True),
        make_tenant("one_wave", 150.0),  # nothing gets in before its blocks end
    ]
    count = 30 if quick else 500
    yield from latency_rows(asking, loads, count)
    yield from guaranteed_rows(asking, loads, count)
    yield from open_loop_rows(asking, loads, 30 if quick else 2000)
