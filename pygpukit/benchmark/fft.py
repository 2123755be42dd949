"""Suite `fft`: batches of transforms of complex64 and float32 against the memory's speed.

A row is in GB/s of the bytes that are read once and written once, 16 a point (8 of real numbers, whose half spectrum is
written). CuPy and PyTorch transform the same batches by cuFFT.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from .measure import device_times_us
from .peers import peer_figures
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "fft"
OVER_CUFFT = ", speed over CuPy's cuFFT"
# (function, length): one kernel, smooth lengths, two kernels, a prime.
CASES = (
    *(("fft", 1 << bits) for bits in (8, 9, 10, 11, 12, 14, 16, 20)),
    *(("fft", n) for n in (400, 480, 1000, 1536, 3000, 1009)),
    *(("rfft", n) for n in (400, 512, 1024, 2048, 4096)),
)
_BYTES = {"fft": 16, "rfft": 8}  # a point


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import numpy as np

    import pygpukit as gp

    from .._core import native

    most = 1 << 20 if native.backend_name() == "sim" else 1 << 23 if quick else 1 << 26
    warmup, iterations = (1, 3) if quick else (5, 30)
    rng = np.random.default_rng(0)
    for name, n in CASES:
        points = max(most // n, 1) * n
        host = rng.standard_normal((points // n, n), dtype=np.float32)
        x = gp.from_numpy(host if name == "rfft" else host.astype(np.complex64))
        times = device_times_us(partial(getattr(gp.fft, name), x), warmup, iterations)
        moved = points * _BYTES[name]
        row = from_samples(f"{name} of {n}", CATEGORY, [moved / t * 1e-3 for t in times], "GB/s", better="higher")
        row.params = {"points": points}
        row.bandwidth_gbps, row.median_us = row.value, median(times)
        yield row


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    for mine in ours:
        name, _, n = mine.name.split()
        for row in peer_figures(
            mine, {"cupy": "cupy_fft", "torch": "torch_fft"}, f"{name},{n},{mine.params['points']}"
        ):
            yield row
            if isinstance(row, BenchmarkResult) and row.peer == "cupy" and row.peer_value and row.value:
                ratio = row.value / row.peer_value
                yield BenchmarkResult(
                    mine.name + OVER_CUFFT, CATEGORY, dict(mine.params), value=ratio, unit="x", better="higher"
                )
