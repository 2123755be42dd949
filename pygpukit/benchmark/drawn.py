"""Suite `random`: calls at shapes that nobody named, beside PyTorch in one run (drawn_cases.py has what is drawn).

A row is the device's time of one call out of a cold cache, the median of event times. With the peer: a geometric mean
of the speeds of each family, the share of its cells at 0.85 or more, and the ten slowest cells of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from statistics import mean
from typing import Any

from .base import Benchmark
from .drawn_cases import FAMILIES, Case, cases, function
from .operator_peers import process_times
from .operators import beside, device_us
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "random"
PEER = "torch"
OVER, SHARE, SLOWEST = "speed over PyTorch, geometric mean", "cells at 0.85 or more", "slowest beside PyTorch"
NEAR = 0.85
COUNT, SMALL_COUNT, WORST = 20, 4, 10
WARM_UPS = 1000  # of 0.1 ms, until the device's clocks have risen
TIMEOUT_S = 400


class Drawn(Benchmark):
    """`count` cases of each family at the shapes of a seed; the same shapes for one seed on every machine."""

    category = CATEGORY

    def __init__(self, seed: int, count: int = COUNT, quick: bool = False, peers: bool = False) -> None:
        super().__init__()
        self.seed, self.count, self.quick, self.peers = seed, count, quick, peers

    def run(self) -> Iterator[BenchmarkResult | Unavailable]:
        from ..core.backend import ensure, is_sim

        ensure()
        count = SMALL_COUNT if is_sim() else self.count
        if is_sim():
            yield Unavailable(f"{CATEGORY}/figures of a GPU", "small shapes ran: their times say nothing")
        else:
            _warm_up()
        ours: list[BenchmarkResult] = []
        for case in cases(self.seed, count, is_sim()):
            row = self._row(case)
            yield row
            ours += [row] if isinstance(row, BenchmarkResult) else []
        if self.peers and is_sim():
            yield Unavailable(f"{CATEGORY}/torch", "the simulated device is no GPU to compare peers on")
        elif self.peers:
            yield from self._beside_peer(ours)

    def _row(self, case: Case) -> BenchmarkResult | Unavailable:
        params = {"seed": self.seed}
        try:
            call = function(case.gp, operands(case))
            return from_samples(case.title, CATEGORY, device_us(call, self.quick), "us", params=params)
        except Exception as error:  # it must not cost the figures of the others; the report has the reason
            key = BenchmarkResult(case.title, CATEGORY, params, value=0).key
            return Unavailable(key, f"{case.gp}: {type(error).__name__}: {error}"[:200])

    def _beside_peer(self, ours: list[BenchmarkResult]) -> Iterator[BenchmarkResult | Unavailable]:
        theirs = dict(process_times(f"{__package__}.drawn_peers", self.seed, self.count, timeout_s=TIMEOUT_S))
        rows = {row.name: row for row in ours}
        speeds: dict[str, float] = {}
        for title, us in theirs.items():
            if isinstance(us, str):
                yield Unavailable(f"{CATEGORY}/{title} {PEER}", us)
            elif title in rows:
                yield beside(rows[title], PEER, us)
                speeds[title] = us / (rows[title].value or 1e-3)
        yield from summary(speeds, self.seed)


def operands(case: Case) -> dict[str, Any]:
    """The arrays that the case's expression sees."""
    import pygpukit as gp

    from ..ops.nn.conv.tile import packed

    names: dict[str, Any] = {"gp": gp, "packed": packed}
    for name, shape in case.shapes.items():
        if case.element == "complex64":
            names[name] = gp.random.randn(*shape, 2, dtype="float32").view("complex64").reshape(shape)
        else:
            names[name] = gp.random.randn(*shape, dtype=case.element)
    if case.gp_weight:
        names["b"] = function(case.gp_weight, names)()
    return names


def _warm_up() -> None:
    import pygpukit as gp

    square = gp.ones((2048, 2048), dtype="bfloat16")
    for _ in range(WARM_UPS):
        gp.matmul(square, square)
    gp.synchronize()


def summary(speeds: dict[str, float], seed: int) -> Iterator[BenchmarkResult]:
    """Each family's mean and share, and the slowest cells, from speeds over the peer by the rows' titles."""
    for family in (*FAMILIES, "all"):
        values = [speed for title, speed in speeds.items() if family in ("all", title.partition(":")[0])]
        if values:
            params = {"of": family, "seed": seed}
            yield _figure(OVER, params, exp(mean(map(log, values))), "x", len(values))
            yield _figure(SHARE, params, 100 * mean(speed >= NEAR for speed in values), "%", len(values))
    for title in sorted(speeds, key=speeds.__getitem__)[:WORST]:
        yield _figure(SLOWEST, {"case": title, "seed": seed}, speeds[title], "x", 1)


def _figure(name: str, params: dict[str, Any], value: float, unit: str, count: int) -> BenchmarkResult:
    return BenchmarkResult(name, CATEGORY, params, iterations=count, value=value, unit=unit, better="higher")
