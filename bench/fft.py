"""Suite `fft`: batches of transforms of complex64 and float32 against the memory's speed.

A row is in GB/s of the bytes that are read once and written once, 16 a point (8 of real numbers, whose half spectrum is
written), with the first transforms' error against float64. CuPy and PyTorch transform as many by cuFFT (fft_peers.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from pygpukit.benchmark.operator_peers import process_times
from pygpukit.benchmark.operators import beside, device_us
from pygpukit.benchmark.result import BenchmarkResult, Unavailable, from_samples

from .fft_peers import BYTES, CASES, transforms

CATEGORY = "fft"
OVER_CUFFT = ", speed over CuPy's cuFFT"
_LOOKED_AT = 16  # transforms


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import numpy as np

    import pygpukit as gp
    from pygpukit._core import native
    from pygpukit.core.backend import ensure

    ensure()
    max_points = 1 << 20 if native.backend_name() == "sim" else 1 << 23 if quick else 1 << 26
    random = gp.random.Generator(0)
    reals = random.standard_normal(max_points)
    values = reals + 1j * random.standard_normal(max_points)
    for name, n in CASES:
        points = transforms(n, max_points) * n
        x = (reals if name == "rfft" else values)[:points].reshape(points // n, n)
        call = partial(getattr(gp.fft, name), x)
        exact = getattr(np.fft, name)(x[:_LOOKED_AT].to_numpy().astype(np.float64 if name == "rfft" else np.complex128))
        head = call()[:_LOOKED_AT].to_numpy()
        times = device_us(call, quick)
        moved = points * BYTES[name]
        row = from_samples(f"{name} of {n}", CATEGORY, [moved / t * 1e-3 for t in times], "GB/s", better="higher")
        row.params = {"points": points}
        row.bandwidth_gbps, row.median_us = row.value, median(times)
        row.rel_error = float(np.linalg.norm(head - exact) / np.linalg.norm(exact))
        yield row


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from pygpukit._core import native

    if native.backend_name() == "sim":
        yield Unavailable(f"{CATEGORY}/peers", "the simulated device is no GPU to compare peers on")
        return
    by_name = {row.name: row for row in ours}
    max_points = max(row.params["points"] for row in ours)
    for library in ("cupy", "torch"):
        for name, us in process_times(f"{__package__}.fft_peers", library, max_points):
            mine = by_name.get(name)
            if isinstance(us, str) or mine is None or mine.value is None or mine.median_us is None:
                yield Unavailable(f"{CATEGORY}/{name} {library}", str(us))
                continue
            yield beside(mine, library, mine.value * mine.median_us / us)
            if library == "cupy":
                ratio = us / mine.median_us
                yield BenchmarkResult(
                    name + OVER_CUFFT, CATEGORY, dict(mine.params), value=ratio, unit="x", better="higher"
                )
