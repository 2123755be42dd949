"""Suite `arrays`: copies and one elementwise operation against the memory's speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from .measure import device_times_us, host_ns
from .peers import peer_figures
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "arrays"
ADD_ROW = "add float32, out of cache"


def _bandwidth(name: str, nbytes: int, moved: int, times_us: list[float]) -> BenchmarkResult:
    """A row in GB/s: bytes read once and written once, over the device's time."""
    row = from_samples(name, CATEGORY, [moved / t * 1e-3 for t in times_us], "GB/s", better="higher")
    row.params = {"MiB": nbytes >> 20}
    row.bandwidth_gbps = row.value
    row.median_us = median(times_us)
    return row


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import numpy as np

    import pygpukit as gp

    from .._core import native

    nbytes = (16 << 20) if native.backend_name() == "sim" else (256 << 20) if quick else (1 << 30)
    count = nbytes // 4
    warmup, iterations = (1, 5) if quick else (5, 30)
    rng = np.random.default_rng(0)
    host = rng.random(count, dtype=np.float32)  # random: zeros can run faster than real data
    a, b = gp.from_numpy(host), gp.from_numpy(host[::-1].copy())
    target = gp.empty(count)

    def event_row(name: str, moved: int, fn: Callable[[], object]) -> BenchmarkResult:
        return _bandwidth(name, nbytes, moved, device_times_us(fn, warmup, iterations))

    yield event_row("copy device to device", 2 * nbytes, lambda: native.copy(target, a))
    yield event_row(ADD_ROW, 3 * nbytes, lambda: gp.add(a, b))
    upload = [v * 1e-3 for v in host_ns(lambda: native.copy_from_host(target, host), 1, 3, native.synchronize)]
    yield _bandwidth("copy host to device, pageable", nbytes, nbytes, upload)
    download = [v * 1e-3 for v in host_ns(lambda: native.copy_to_host(host, target), 1, 3)]
    yield _bandwidth("copy device to host, pageable", nbytes, nbytes, download)

    small_a, small_b = gp.ones(256), gp.ones(256)
    samples = host_ns(lambda: gp.add(small_a, small_b), 200, 9, native.synchronize)
    yield from_samples("gp.add of 256 elements, host time", CATEGORY, [v * 1e-3 for v in samples], "us")


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    mine = next(r for r in ours if r.name == ADD_ROW)
    yield from peer_figures(mine, {"cupy": "cupy_add", "torch": "torch_add"}, str(mine.params["MiB"] << 20))
