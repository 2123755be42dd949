"""Suite `limits`: what our own kernels reach on this device, the figures that --bench compares with."""

from __future__ import annotations

from collections.abc import Iterator

from .result import BenchmarkResult, Unavailable

CATEGORY = "limits"


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    from ..profiling.limits import limits

    found = limits()
    yield BenchmarkResult("copy, read and written", CATEGORY, value=found.copy_gbps, unit="GB/s", better="higher")
    yield BenchmarkResult("float32 FMA", CATEGORY, value=found.fma_gflops, unit="GFLOP/s", better="higher")
