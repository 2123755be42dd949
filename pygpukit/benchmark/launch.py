"""Suite `launch`: a bound three-argument kernel from Python beside a C++ loop over the same driver call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from math import nan
from statistics import fmean, median
from typing import Any

from .. import _core
from ..telemetry.sampler import Sampler, Sink
from .measure import host_ns
from .peers import SCALE, peer_figures
from .result import BenchmarkResult, Unavailable, from_samples

CATEGORY = "launch"
PYTHON_ROW = "bound kernel from Python"

BATCH = 500  # launches between two waits: fewer than a device's launch queue holds
CELL = 2000  # launches of a cell; the device does each in less time than the host needs for it
NEAR_NS = 1_000_000  # so much before and after a frame a launch may meet its thread


class Watched(Sampler):
    """The dashboards' sampler with one sink. frames_ns: when each frame was begun and handed over."""

    def __init__(self, device: int) -> None:
        super().__init__()
        self.frames_ns: list[tuple[int, int]] = []
        self._sink = Page(device)

    def _tick(self, sinks: list[Sink]) -> None:
        begin = time.perf_counter_ns()
        super()._tick(sinks)
        self.frames_ns.append((begin, time.perf_counter_ns()))

    def __enter__(self) -> Watched:
        self.add(self._sink)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Page:
    """A sink that somebody looks at, and that drops what it is sent."""

    visible = True

    def __init__(self, device: int) -> None:
        self.device = device
        self.since, self.since_name = _core.ring_head(), 0

    def send_frame(self, frame: bytes) -> None:
        pass


def batches_ns(
    call: Callable[[], object], launches: int, seconds: float, wait: Callable[[], object]
) -> list[tuple[int, int]]:
    """Begin and end of each batch of launches in a window; the waits between batches are not counted."""
    batches = []
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        begin = time.perf_counter_ns()
        for _ in range(launches):
            call()
        batches.append((begin, time.perf_counter_ns()))
        wait()
    return batches


def added_percent(batches_ns: list[tuple[int, int]], frames_ns: list[tuple[int, int]]) -> float:
    """Percent that all batches took longer, on average, than those that were far from any frame.

    Both are of the same second, so that clocks that drift, and neighbours that come and go, meet both alike: windows
    with and without a sampler differ by more than it costs. NaN where there was no frame, or no batch far from all of
    them.
    """
    whole = [end - begin for begin, end in batches_ns]
    far = [
        end - begin
        for begin, end in batches_ns
        if all(end < first - NEAR_NS or begin > last + NEAR_NS for first, last in frames_ns)
    ]
    return (fmean(whole) / fmean(far) - 1) * 100 if frames_ns and far else nan


def telemetry_costs(call: Callable[[], object], launches: int, windows: int, device: int) -> list[float]:
    """added_percent() of windows of a second in which a sampler runs."""
    from .._core import native

    costs = []
    for _ in range(windows):
        with Watched(device) as sampler:
            batches = batches_ns(call, launches, 1.0, native.synchronize)
        costs.append(added_percent(batches, sampler.frames_ns))
    return costs


def cell_ns(call: Callable[[], object], launches: int, mode: str) -> float:
    """Nanoseconds a launch in a cell that launches and does not wait, timed like this: on, exact or off."""
    from .._core import native

    native.set_launch_timing(mode)
    period = native.CellTime()
    begin = time.perf_counter_ns()
    for _ in range(launches):
        call()
    spent = time.perf_counter_ns() - begin
    period.end()
    native.synchronize()
    period.read()  # the events are free again
    native.set_launch_timing("on")
    return spent / launches


def cell_costs(call: Callable[[], object], launches: int, mode: str, pairs: int) -> list[float]:
    """Percent that a launch costs more where cells are timed, by pairs of cells in both orders."""
    costs = []
    for pair in range(pairs):
        modes = (mode, "off") if pair % 2 else ("off", mode)
        spent = {each: cell_ns(call, launches, each) for each in modes}
        costs.append((spent[mode] / spent["off"] - 1) * 100)
    return costs


def rows(quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    import pygpukit as gp

    from .._core import native

    kernel = gp.jit(SCALE, func="scale")
    x = gp.ones(256)
    bound: Any = kernel[1, 256]
    arguments = (x, 1.0, 256)
    calls = 100 if native.backend_name() == "sim" else BATCH

    def call() -> None:
        bound(x, 1.0, 256)

    rounds = 5 if quick else 25
    python, loop = [], []
    for _ in range(rounds):  # in turn, so that both meet the same clocks
        loop.append(native.launch_loop_ns(bound, arguments, calls))
        native.synchronize()
        python += host_ns(call, calls, 1, native.synchronize)
    ratios = [p / c for p, c in zip(python, loop, strict=True)]
    yield from_samples("C++ loop over the driver's launch", CATEGORY, [v * 1e-3 for v in loop], "us")
    yield from_samples(PYTHON_ROW, CATEGORY, [v * 1e-3 for v in python], "us")
    yield from_samples("Python launch over C++ loop", CATEGORY, ratios, "x")

    costs = telemetry_costs(call, calls, 2 if quick else 20, x.device)
    yield from_samples("telemetry to a sink, cost of a launch", CATEGORY, costs, "%")

    # One pair differs from the next by more than timing costs: the first row has a goal, so it has the pairs to tell.
    launches = 200 if native.backend_name() == "sim" else CELL
    for mode, name, pairs in (("on", "timing of cells", 600), ("exact", "exact timing of cells", 100)):
        costs = cell_costs(call, launches, mode, 10 if quick else pairs)
        yield from_samples(f"{name}, cost of a launch", CATEGORY, costs, "%")

    trips = []
    for _ in range(200 if quick else 2_000):
        begin = time.perf_counter_ns()
        call()
        native.synchronize()
        trips.append((time.perf_counter_ns() - begin) * 1e-3)
    yield BenchmarkResult("launch and wait", CATEGORY, value=median(trips), unit="us", iterations=len(trips))


def peer_rows(ours: list[BenchmarkResult], quick: bool) -> Iterator[BenchmarkResult | Unavailable]:
    mine = next(r for r in ours if r.name == PYTHON_ROW)
    yield from peer_figures(mine, {"cuda-core": "cuda_core_launch", "cupy": "cupy_launch", "triton": "triton_launch"})
