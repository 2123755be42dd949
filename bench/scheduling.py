"""Suite `scheduling`: what submitting, choosing and ending a task cost on the host, from Rust and from Python."""

from __future__ import annotations

from collections.abc import Iterator

from pygpukit.benchmark.measure import apart, host_ns
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "scheduling"
TENANTS = (1, 1000)
SAMPLES = 9
IN_A_ROW = 10_000


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit import _core
    from pygpukit.scheduler import Scheduler

    calls = 2_000 if quick else 20_000
    rounds: dict[int, list[dict[str, float]]] = {tenants: [] for tenants in TENANTS}
    in_a_row: list[float] = []
    for _ in apart(SAMPLES, quick):
        for tenants in TENANTS:
            rounds[tenants].append(dict(_core.scheduling_ns(tenants, calls)))
        in_a_row.append(_core.submissions_ns(0, IN_A_ROW) / 1e6)
    for tenants, samples in rounds.items():
        for call in samples[0]:
            name = call if tenants == 1 else f"{call}, {tenants} tenants"
            yield from_samples(name, CATEGORY, [figures[call] for figures in samples], "ns")
    yield from_samples(f"{IN_A_ROW} submissions into a new table", CATEGORY, in_a_row, "ms")

    batch = 200 if quick else 2_000
    scheduler = Scheduler(total_memory="1GB", max_queue=batch * 10, start=False)
    took = host_ns(lambda: scheduler.submit(_nothing, memory=64), batch, SAMPLES)
    yield from_samples("Scheduler.submit, Python", CATEGORY, [ns / 1000 for ns in took], "us")
    scheduler.close()


def _nothing() -> None:
    pass
