"""Suite `limits`: what our own kernels reach on this device, the figures that --bench compares with."""

from __future__ import annotations

from collections.abc import Iterator

from .result import BenchmarkResult, Unavailable

CATEGORY = "limits"


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from ..profiling.limits import limits

    rates = limits()
    yield BenchmarkResult("copy, read and written", CATEGORY, value=rates.copy_gbps, unit="GB/s", better="higher")
    yield BenchmarkResult("float32 FMA", CATEGORY, value=rates.fma_gflops, unit="GFLOP/s", better="higher")
