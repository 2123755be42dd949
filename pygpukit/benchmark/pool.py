"""Suite `pool`: an allocation that finds a cached block, from Rust and from Python."""

from __future__ import annotations

from collections.abc import Iterator

from .measure import host_ns
from .peers import peer_figures
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "pool"
PYTHON_ROW = "gp.empty and release, Python"


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import pygpukit as gp

    from .. import _core

    keep = gp.empty(256)  # opens the backend and maps the segment
    rounds = 20_000 if quick else 200_000
    pairs = [_core.pool_hit_ns(keep.device, 1024, rounds) for _ in range(9)]
    yield from_samples("pool hit, Rust", CATEGORY, [hit for hit, _ in pairs], "ns")
    yield from_samples("pool free, Rust", CATEGORY, [free for _, free in pairs], "ns")

    empty = gp.empty
    yield from_samples(PYTHON_ROW, CATEGORY, host_ns(lambda: empty(256), 2_000 if quick else 20_000, 9), "ns")
    zeros = gp.zeros
    samples = host_ns(lambda: zeros(256), 200 if quick else 1_000, 9, gp.synchronize)
    yield from_samples("gp.zeros and release, Python", CATEGORY, samples, "ns")


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    mine = next(r for r in ours if r.name == PYTHON_ROW)
    yield from peer_figures(mine, {"cupy": "cupy_empty", "torch": "torch_empty"})
