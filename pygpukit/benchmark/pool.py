"""Suite `pool`: an allocation that finds a cached block, from Rust and from Python."""

from __future__ import annotations

from collections.abc import Iterator

from .measure import apart, host_ns
from .peers import peer_figures
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "pool"
PYTHON_ROW = "gp.empty and release, Python"
SAMPLES = 9


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import pygpukit as gp

    from .. import _core

    keep = gp.empty(256)  # opens the backend and maps the segment
    empty, zeros = gp.empty, gp.zeros
    hit: list[float] = []
    free: list[float] = []
    from_python: list[float] = []
    zeroed: list[float] = []
    for _ in apart(SAMPLES, quick):
        rounds = 20_000 if quick else 200_000
        hit_ns, free_ns = _core.pool_hit_ns(keep.device, 1024, rounds)
        hit.append(hit_ns)
        free.append(free_ns)
        from_python += host_ns(lambda: empty(256), 2_000 if quick else 20_000, 1)
        zeroed += host_ns(lambda: zeros(256), 200 if quick else 1_000, 1, gp.synchronize)
    yield from_samples("pool hit, Rust", CATEGORY, hit, "ns")
    yield from_samples("pool free, Rust", CATEGORY, free, "ns")
    yield from_samples(PYTHON_ROW, CATEGORY, from_python, "ns")
    yield from_samples("gp.zeros and release, Python", CATEGORY, zeroed, "ns")


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    mine = next(r for r in ours if r.name == PYTHON_ROW)
    yield from peer_figures(mine, {"cupy": "cupy_empty", "torch": "torch_empty"})
