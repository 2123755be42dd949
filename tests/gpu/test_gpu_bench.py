"""bench() and limits() on the device, each beside a second way to measure the same."""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.profiling.bench import BenchResult, bench
from pygpukit.profiling.limits import limits

SCALE = """
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""


def event_times_us(run: Any, count: int = 30) -> list[float]:
    """Each launch between two events, all of them queued behind one long copy, so that the host is never waited for."""
    big = gp.empty(1 << 28, "uint8")
    copy = gp.empty(1 << 28, "uint8")
    pairs = [(native.Event(), native.Event()) for _ in range(count)]
    for _ in range(8):
        native.copy(copy, big)
    for start, end in pairs:
        start.record()
        run()
        end.record()
    native.synchronize()
    return [start.elapsed_ms(end) * 1e3 for start, end in pairs]


def test_the_limits_are_near_a_device_copy_and_below_what_no_device_reaches() -> None:
    found = limits()
    assert limits() is found
    nbytes = 1 << 29
    source, target = gp.empty(nbytes, "uint8"), gp.empty(nbytes, "uint8")
    native.fill(source, b"\x5a")
    copied = 2 * nbytes / median(event_times_us(lambda: native.copy(target, source))) * 1e-3
    assert found.copy_gbps == pytest.approx(copied, rel=0.15)
    info = native.device_info(native.current_device())
    lanes = info["multiprocessor_count"] * 128
    peak = 2 * lanes * info["clock_khz"] * 1e-6  # float32 of the largest multiprocessor that is supported
    assert 0.3 * peak < found.fma_gflops <= 1.05 * peak


def test_the_median_agrees_with_events_set_by_hand() -> None:
    kernel, n = gp.jit(SCALE), 1 << 26
    x = gp.from_numpy(np.ones(n, np.float32))
    launch: Any = kernel[n // 256, 256]
    found = bench(lambda: launch(x, 1.0, n), bytes=8 * n, flops=n)
    assert found.median_us == pytest.approx(median(event_times_us(lambda: launch(x, 1.0, n))), rel=0.05)
    assert found.cold_l2
    assert found.bound == "memory"
    assert found.percent_of_limit is not None and 60 < found.percent_of_limit < 110


def test_a_cold_cache_is_slower_than_a_warm_one() -> None:
    kernel, n = gp.jit(SCALE), 1 << 22  # 16 MiB: fits into the cache
    x = gp.from_numpy(np.ones(n, np.float32))
    launch: Any = kernel[n // 256, 256]

    def run() -> None:
        launch(x, 1.0, n)

    cold, warm = bench(run), bench(run, flush_l2=False)
    assert cold.cold_l2 and not warm.cold_l2
    assert cold.median_us > warm.median_us


def test_short_launches_are_batched_and_agree_with_a_long_chain() -> None:
    kernel, x = gp.jit(SCALE), gp.ones(256)
    launch: Any = kernel[1, 256]
    found = bench(lambda: launch(x, 1.0, 256), flush_l2=False)
    assert found.batch > 1
    assert 0.5 < found.median_us < 50


def test_clocks_are_told_where_nvml_is_there() -> None:
    kernel, x = gp.jit(SCALE), gp.ones(1 << 20)
    found: BenchResult = bench(lambda: kernel(x, 1.0, x.size))
    if found.clocks is None:
        assert "NVML is not there" in str(found)
        return
    mhz = native.device_info(native.current_device())["clock_khz"] / 1e3
    assert found.clocks.sm_mhz_after is not None
    assert 0.1 * mhz < found.clocks.sm_mhz_after <= 1.2 * mhz


def test_bench_keeps_to_its_stream() -> None:
    kernel, x, stream = gp.jit(SCALE), gp.ones(1 << 20), gp.Stream()
    launch: Any = kernel[4096, 256, stream]
    before = native.current_stream().handle
    found = bench(lambda: launch(x, 1.0, x.size), stream=stream, max_samples=20)
    assert found.median_us > 0
    assert native.current_stream().handle == before
    assert stream.query()
