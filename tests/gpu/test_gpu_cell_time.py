"""The GPU time of cells against totals of its own: two events around the same work, and the kernels' own clocks."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.telemetry import cell_figures
from pygpukit.telemetry.cell_figures import CellFigures

SOURCE = """
__device__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}
// Runs for so long and adds to the total how long that was.
extern "C" __global__ void spin(long long* total, long long ns) {
    unsigned long long begin = now(), end = begin;
    while ((long long)(end - begin) < ns) end = now();
    atomicAdd((unsigned long long*)total, end - begin);
}
"""
WITHIN = 0.01
PATIENCE_S = 60


class Spin:
    """spin(us): one launch. total_ns(): what the kernels' own clocks say about all of them, since the last call."""

    def __init__(self) -> None:
        self._bound = gp.jit(SOURCE, func="spin")[1, 1]
        self._total = gp.zeros(1, dtype="int64")

    def __call__(self, us: float) -> None:
        self._bound(self._total, round(us * 1000))

    def total_ns(self) -> int:
        total = int(self._total.to_numpy()[0])
        self._total.fill(0)
        gp.synchronize()
        return total


@pytest.fixture
def spin() -> Iterator[Spin]:
    made = Spin()
    for _ in range(100):
        made(1)
    made.total_ns()
    cell_figures.ledger.clear()
    yield made
    native.set_launch_timing("on")


def cell(code: Callable[[], object]) -> None:
    """What a notebook's hooks do around a cell."""
    begun, begin_ns = cell_figures.mark(), _core.now_ns()
    code()
    cell_figures.ledger.add(cell_figures.measure(begun, 0, 1, _core.now_ns() - begin_ns), begun.time)


def figures() -> CellFigures:
    """Of the newest cell, once the device is done with it."""
    gp.synchronize()
    end = time.monotonic() + PATIENCE_S
    while (row := cell_figures.ledger.rows()[-1]).running and time.monotonic() < end:
        time.sleep(0.001)
    assert not row.running and row.complete
    return row


def between_events(code: Callable[[], object]) -> tuple[CellFigures, float]:
    """Of a cell, and how many nanoseconds two events around it were apart."""
    begin, end = gp.Event(), gp.Event()

    def measured() -> None:
        begin.record()
        code()
        end.record()

    cell(measured)
    found = figures()
    return found, begin.elapsed_ms(end) * 1e6


@pytest.mark.parametrize(("us", "launches"), [(5, 4000), (20, 1000), (100, 200), (1000, 20)])
def test_one_stretch(spin: Spin, us: float, launches: int) -> None:
    found, expected = between_events(lambda: [spin(us) for _ in range(launches)])
    assert (found.launches, found.untimed) == (launches, 0)
    assert found.gpu_ns == pytest.approx(expected, rel=WITHIN)


def test_two_streams_at_a_time_count_once(spin: Spin) -> None:
    streams = gp.Stream(), gp.Stream()

    def both() -> None:
        for stream in streams:
            stream.wait_event(began)
        for _ in range(20):
            for stream in streams:
                with stream:
                    spin(1000)
        for stream in streams:
            gp.default_stream().wait_event(stream.record_event())

    began = gp.Event(timing=False)
    began.record()
    found, expected = between_events(both)
    assert found.untimed == 0
    assert found.gpu_ns == pytest.approx(expected, rel=WITHIN)
    assert spin.total_ns() > 1.9 * found.gpu_ns


def test_pauses_do_not_count(spin: Spin) -> None:
    # Long launches: an idle device takes up to some 25 us from the event before a launch to its first instruction.
    def often() -> None:
        for i in range(20):
            spin(10_000)
            if i % 2:
                gp.synchronize()
            time.sleep(0.025)

    cell(often)
    found = figures()
    assert (found.launches, found.untimed) == (20, 0)
    assert found.gpu_ns == pytest.approx(spin.total_ns(), rel=WITHIN)
    assert found.wall_ns > 1.5 * found.gpu_ns


def test_a_graph_is_timed_as_a_whole(spin: Spin) -> None:
    stream = gp.Stream()
    with stream.capture() as graph:
        for _ in range(20):
            spin(100)
    begin, end = gp.Event(), gp.Event()

    def replay() -> None:
        begin.record(stream)
        for _ in range(5):
            graph.launch(stream)
        end.record(stream)

    cell(replay)
    found = figures()
    assert (found.launches, found.untimed) == (100, 0)
    assert found.gpu_ns == pytest.approx(begin.elapsed_ms(end) * 1e6, rel=WITHIN)


def test_a_cell_that_ends_before_its_work(spin: Spin) -> None:
    cell(lambda: [spin(20_000) for _ in range(5)])
    row = cell_figures.ledger.rows()[-1]
    assert row.running and row.wall_ns < 50_000_000, "it did not wait"
    cell(lambda: spin(1000))
    found = figures()
    first = cell_figures.ledger.rows()[-2]
    assert first.gpu_ns + found.gpu_ns == pytest.approx(spin.total_ns(), rel=WITHIN)
    assert found.gpu_ns == pytest.approx(1e6, rel=0.05), "it does not count what it waited for"


def test_exact_timing_leaves_the_gaps_out(spin: Spin) -> None:
    native.set_launch_timing("exact")
    cell(lambda: [spin(1000) for _ in range(50)])
    found = figures()
    assert found.untimed == 0
    assert found.gpu_ns == pytest.approx(spin.total_ns(), rel=WITHIN)


def test_a_lost_context_leaves_no_error_behind() -> None:
    code = """
import pygpukit as gp
from pygpukit._core import native
source = 'extern "C" __global__ void wrong(int* x) { *(volatile int*)8 = x[0]; }'
x, wrong = gp.zeros(1, dtype="int32"), gp.jit(source, func="wrong")
period = native.CellTime()
wrong[1, 1](x)
try:
    gp.synchronize()
except gp.GPUError as error:
    print(type(error).__name__)
try:
    wrong[1, 1](x)
except gp.GPUError as error:
    print(type(error).__name__)
period.end()
print(period.read()[1:3])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    *errors, last = done.stdout.splitlines()
    assert len(errors) == 2 and last == "(0, False)", done.stdout + done.stderr
