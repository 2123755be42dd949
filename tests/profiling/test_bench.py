"""bench() and limits(): the rule that ends sampling, what is refused, what is said; clocks are told or unknown."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core import clocks as nvml
from pygpukit.kernels import launch, measure
from pygpukit.profiling import timing
from pygpukit.profiling.bench import BenchResult, Clocks, bench
from pygpukit.profiling.limits import Limits, limits

SCALE = """
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""

times = st.floats(min_value=1e-2, max_value=1e6)


def result(samples: tuple[float, ...] = (10.0, 11.0, 12.0), **more: Any) -> BenchResult:
    fields: dict[str, Any] = {"batch": 1, "cold_l2": True, "backend": "cuda", **more}
    return BenchResult(samples=samples, **fields)


# ---- the rule ----


@given(times, st.lists(st.floats(-0.004, 0.004), min_size=timing.MIN_SAMPLES, max_size=60))
def test_samples_within_half_a_percent_settle(middle: float, noise: list[float]) -> None:
    assert not timing.unsettled([middle * (1 + one) for one in noise])


@given(st.lists(times, max_size=timing.MIN_SAMPLES - 1))
def test_few_samples_never_settle(samples: list[float]) -> None:
    assert timing.unsettled(samples)


@given(times, st.integers(timing.MIN_SAMPLES, 60), st.floats(0.1, 1.0))
def test_two_clocks_in_turn_never_settle(middle: float, count: int, apart: float) -> None:
    assert timing.unsettled([middle * (1 + apart * (at % 2)) for at in range(count)])


@given(times, st.integers(2 * timing.MIN_SAMPLES, 60), st.floats(0.03, 1.0))
def test_a_step_half_way_never_settles(middle: float, count: int, step: float) -> None:
    assert timing.unsettled([middle * (1 + step * (at >= count // 2)) for at in range(count)])


@given(times, st.integers(timing.MIN_SAMPLES, 60), st.floats(1.5, 100.0), st.data())
def test_one_outlier_changes_nothing(middle: float, count: int, factor: float, data: st.DataObject) -> None:
    samples = [middle] * count
    samples[data.draw(st.integers(0, count - 1))] *= factor
    assert not timing.unsettled(samples)
    assert median(samples) == middle


@given(st.lists(times, min_size=1, max_size=60), st.sampled_from([0.5, 2.0, 1024.0]))
def test_the_rule_has_no_unit(samples: list[float], scale: float) -> None:
    scaled = [scale * one for one in samples]
    assert bool(timing.unsettled(samples)) == bool(timing.unsettled(scaled))
    assert math.isclose(timing.spread(samples), timing.spread(scaled), rel_tol=1e-12, abs_tol=1e-15)


@given(st.lists(times, min_size=1, max_size=60))
def test_the_spread_is_the_textbooks(samples: list[float]) -> None:
    deviations = np.abs(np.array(samples) - np.median(samples))
    assert math.isclose(timing.spread(samples), 1.4826 * np.median(deviations) / np.median(samples), abs_tol=1e-12)


class Clockwork:
    """Stands in for the device: events read a clock that run() advances by the next of the given times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, time_us: Callable[[int], float]) -> None:
        self.now_us, self.launches, self._time_us = 0.0, 0, time_us
        clockwork = self

        class Event:
            def record(self, stream: object) -> None:
                self.at_us = clockwork.now_us

            def elapsed_ms(self, end: Event) -> float:
                return (end.at_us - self.at_us) * 1e-3

        monkeypatch.setattr(timing.native, "Event", Event)

    def run(self) -> None:
        self.now_us += self._time_us(self.launches)
        self.launches += 1


def test_steady_launches_converge_with_the_least_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    clockwork = Clockwork(monkeypatch, lambda _: 100.0)
    found = bench(clockwork.run, warmup_ms=0)
    assert (found.converged, len(found.samples), found.batch) == (True, timing.MIN_SAMPLES, 1)
    assert math.isclose(found.median_us, 100.0)
    assert found.mad_us < 1e-6


def test_unsteady_launches_end_at_the_limit_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    clockwork = Clockwork(monkeypatch, lambda at: 100.0 * (1 + at % 2))
    found = bench(clockwork.run, warmup_ms=0, max_samples=25)
    assert (found.converged, len(found.samples)) == (False, 25)
    assert "did not converge" in str(found)


def test_short_launches_are_batched_until_the_clock_can_tell_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clockwork = Clockwork(monkeypatch, lambda _: 2.0)
    found = bench(clockwork.run, warmup_ms=0)
    assert found.batch == 25
    assert math.isclose(found.median_us, 2.0)


def test_the_budget_ends_it_with_at_least_one_sample() -> None:
    found = bench(lambda: native.host_launch("wait", lambda: native.synchronize(), ()), warmup_ms=0, budget_ms=1e-6)
    assert len(found.samples) >= 1
    assert not found.converged


# ---- bad input ----


def never() -> None:
    raise AssertionError("nothing may run")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"bytes": -1}, "bytes is -1"),
        ({"bytes": math.nan}, "bytes is nan"),
        ({"bytes": "many"}, "bytes is 'many'"),
        ({"bytes": True}, "bytes is True"),
        ({"flops": math.inf}, "flops is inf"),
        ({"max_samples": 0}, "max_samples is 0"),
        ({"budget_ms": 0.0}, "budget_ms is 0.0"),
        ({"budget_ms": math.nan}, "budget_ms is nan"),
        ({"warmup_ms": -1.0}, "warmup_ms is -1.0"),
    ],
)
def test_bad_numbers_are_refused_before_anything_runs(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        bench(never, **options)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="run is a int"):
        bench(3)  # type: ignore[arg-type]


def test_what_run_raises_comes_out_and_the_stream_is_restored() -> None:
    before, other = native.current_stream(), gp.Stream()
    with pytest.raises(AssertionError, match="nothing may run"):
        bench(never, stream=other)
    assert native.current_stream().handle == before.handle


# ---- the simulated device ----


def test_a_kernel_on_the_simulated_device() -> None:
    kernel, x = gp.jit(SCALE), gp.ones(1000)
    launch: Any = kernel[4, 256]
    found = bench(lambda: launch(x, 1.0, 1000), bytes=8000, flops=1000, warmup_ms=1, max_samples=12, stream=gp.Stream())
    assert found.backend == "sim" and found.median_us > 0
    assert min(found.samples) <= found.median_us <= max(found.samples)
    assert math.isclose(found.gbps or 0, 8000 / found.median_us * 1e-3)
    assert found.limits is None and found.percent_of_limit is None and found.bound is None
    assert found.clocks is None and not found.cold_l2
    assert "says nothing about a GPU" in str(found)
    np.testing.assert_array_equal(x.to_numpy(), 1.0)


def test_the_limits_are_measured_once() -> None:
    first = limits()
    assert first is limits()
    assert first.backend == "sim"
    assert first.copy_gbps > 0 and first.fma_gflops > 0


def test_the_kernels_to_measure_with_do_what_they_say() -> None:
    source = gp.from_numpy(np.arange(4096 + 12, dtype=np.uint32))
    target = gp.from_numpy(np.zeros(source.size, dtype=np.uint32))
    words = source.nbytes // 16
    launch(measure.COPY_WORDS, (2, 1, 1), (256, 1, 1), target, source, struct.pack("q", words))
    np.testing.assert_array_equal(target.to_numpy(), source.to_numpy())

    sink = gp.from_numpy(np.array([7], dtype=np.int32))
    zeros = gp.from_numpy(np.zeros(4096, dtype=np.uint32))
    launch(measure.READ_WORDS, (1, 1, 1), (256, 1, 1), zeros, struct.pack("q", 1024), sink)
    assert sink.to_numpy()[0] == 7

    out = gp.from_numpy(np.array([7.0], dtype=np.float32))
    values = struct.pack("f", 0.999), struct.pack("f", 0.001), struct.pack("i", 3)
    launch(measure.FMA_CHAINS, (1, 1, 1), (32, 1, 1), out, *values)
    assert out.to_numpy()[0] == 7.0
    launch(measure.PAUSE, (1, 1, 1), (1, 1, 1), struct.pack("q", 1000))
    native.synchronize()


# ---- what the result says ----


def test_rates_and_percentages_follow_from_what_is_given() -> None:
    known = Limits(copy_gbps=4000.0, fma_gflops=50_000.0, backend="cuda", device="a GPU")
    found = result((100.0,), bytes=2e8, flops=1e9, limits=known)
    assert (found.gbps, found.gflops) == (2000.0, 10_000.0)
    assert (found.percent_of_copy, found.percent_of_fma) == (50.0, 20.0)
    assert (found.percent_of_limit, found.bound) == (50.0, "memory")
    assert result((100.0,), flops=1e9, limits=known).bound == "compute"
    bare = result((100.0,))
    assert (bare.gbps, bare.gflops, bare.percent_of_limit, bare.bound) == (None, None, None, None)
    assert "GB/s" not in str(bare) and "%" not in str(bare)


@given(st.lists(times, min_size=1, max_size=60), st.sampled_from([None, 1000]))
def test_the_one_line_text_has_no_figure_that_varies(samples: list[float], moved: int | None) -> None:
    clocks = Clocks(int(samples[0]), None, ("power cap",))
    varying = result(tuple(samples), clocks=clocks, bytes=moved, batch=len(samples))
    assert repr(varying) == repr(result((1.0,), bytes=moved))


def test_clocks_are_said_and_what_held_them_down() -> None:
    text = str(result(clocks=Clocks(1980, 1725, ("power cap",))))
    assert "SM clock 1980 MHz before, 1725 after, held down by power cap" in text
    assert "NVML is not there" in str(result())


# ---- NVML ----


class FakeNvml:
    """The four calls of NVML that are used. mhz None: the device does not tell."""

    def __init__(self, mhz: int | None, bits: int, known: bytes) -> None:
        self._mhz, self._bits, self._known = mhz, bits, known

    def nvmlDeviceGetHandleByUUID(self, name: ctypes.c_char_p, handle: Any) -> int:
        return 0 if name.value == self._known else 6

    def nvmlDeviceGetClockInfo(self, handle: object, kind: int, mhz: Any) -> int:
        if self._mhz is None:
            return 3
        assert kind == 1
        mhz._obj.value = self._mhz
        return 0

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object, bits: Any) -> int:
        bits._obj.value = self._bits
        return 0


IDENTITY = bytes(range(16))
NAME = b"GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeNvml | None], None]:
    monkeypatch.setattr(nvml.native, "device_info", lambda _: {"uuid": IDENTITY})
    return lambda library: monkeypatch.setattr(nvml, "_library", lambda: library)


def test_clocks_come_from_the_device_of_that_identity(install: Callable[[FakeNvml | None], None]) -> None:
    install(FakeNvml(1980, 0x1 | 0x4 | 0x40, NAME))
    assert nvml.read_clocks(0) == nvml.ClockReading(1980, ("power cap", "hardware thermal slowdown"))
    install(FakeNvml(None, 0, NAME))
    assert nvml.read_clocks(0) == nvml.ClockReading(None, ())


def test_without_nvml_or_the_device_in_it_nothing_is_invented(install: Callable[[FakeNvml | None], None]) -> None:
    install(None)
    assert nvml.read_clocks(0) is None
    install(FakeNvml(1980, 0, b"GPU-another"))
    assert nvml.read_clocks(0) is None


def test_the_simulated_device_has_no_clocks() -> None:
    gp.backend()
    assert nvml.read_clocks(0) is None
