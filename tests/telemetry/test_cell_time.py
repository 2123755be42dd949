"""How long the device was busy with a period's launches, beside events that the test records around the same work."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.scheduler import Scheduler

pytestmark = pytest.mark.usefixtures("backend_name")

# clock64() counts nanoseconds on the simulation, half of them or so on a device.
SOURCE = """
extern "C" __global__ void spin(float* out, long long ticks) {
    long long begin = clock64();
    while (clock64() - begin < ticks) { }
    if (ticks < 0) out[0] = 1;
}
"""
HOLD = "__global__ void hold(int* flag) { while (*(volatile int*)flag == 0) { } }"
MS = 2_000_000  # ticks: 1 ms on a device, 2 ms on the simulation
LEAST_NS = 0.9e6  # of the device, that so many ticks take
PAUSE_S = 0.1
PATIENCE_S = 60
Launch = Callable[..., None]
Ahead = Callable[..., AbstractContextManager[None]]


@pytest.fixture
def spin() -> Launch:
    """spin(ticks, stream): one launch."""
    kernel, out = gp.jit(SOURCE, func="spin"), gp.zeros(1)
    bound = kernel[1, 1]

    def launch(ticks: int, stream: gp.Stream | None = None) -> None:
        with nullcontext() if stream is None else stream:
            bound(out, ticks)

    launch(1)
    gp.synchronize()
    return launch


@pytest.fixture
def ahead() -> Ahead:
    """`with ahead(*streams):` what is launched on them in it runs after it, so that the host is ahead however slow."""
    hold, flag, own = gp.jit(HOLD, func="hold"), gp.ones(1, "int32"), gp.Stream()
    hold[1, 1](flag)

    @contextmanager
    def held(*streams: gp.Stream) -> Iterator[None]:
        flag.fill(0)
        gp.synchronize()
        with own:
            hold[1, 1](flag)
            let_go = own.record_event()
        for stream in streams or (gp.default_stream(),):
            stream.wait_event(let_go)
        try:
            yield
        finally:
            with gp.Stream():
                native.copy_from_host(flag, np.ones(1, np.int32))

    return held


@pytest.fixture(autouse=True)
def _timing() -> Iterator[None]:
    yield
    native.set_launch_timing("on")
    assert _settled(native.CellTime()) == (0, 0), "no period was left open"


def _settled(period: native.CellTime) -> tuple[int, int]:
    """Nanoseconds and launches of a period that ends now."""
    period.end()
    gp.synchronize()
    end = time.monotonic() + PATIENCE_S
    while period.read()[2] and time.monotonic() < end:
        time.sleep(0.001)
    ns, launches, pending, cut = period.read()
    assert not pending and not cut
    return ns, launches


def _elapsed_ns(begin: gp.Event, end: gp.Event) -> float:
    return begin.elapsed_ms(end) * 1e6


def _check(ns: int, ticks: int, elapsed_ns: float, rel: float = 0.01, abs_ns: float = 20_000) -> None:
    """The time of so many ticks is within what events around the same work say, and no less than the work takes.

    On a device it is what the events say; a thread of the simulation may rest between an event and the work.
    """
    assert ns <= elapsed_ns + abs_ns
    assert ns >= (elapsed_ns * (1 - rel) - abs_ns if gp.backend() == "cuda" else ticks * 0.99)


def _run_dry(stream: gp.Stream) -> None:
    """Until the stream has nothing to do, without a wait that the layer under the package would see."""
    end = time.monotonic() + PATIENCE_S
    while not stream.query() and time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.parametrize("mode", ["on", "exact"])
@pytest.mark.parametrize(("ticks", "launches"), [(MS // 10, 100), (MS, 10)])
def test_a_stretch_is_as_long_as_two_events_say(
    spin: Launch, ahead: Ahead, ticks: int, launches: int, mode: str
) -> None:
    native.set_launch_timing(mode)
    begin, end = gp.Event(), gp.Event()
    with ahead():
        period = native.CellTime()
        begin.record()
        for _ in range(launches):
            spin(ticks)
        period.end()
        end.record()
        assert period.read()[2], "nobody waited for the work"
    ns, timed = _settled(period)
    assert timed == launches
    # Exact leaves out what lies between two launches: 2 us on a device.
    _check(ns, launches * ticks, _elapsed_ns(begin, end), rel=0.01 if mode == "on" else 0.05)


def test_streams_that_work_at_a_time_count_once(spin: Launch, ahead: Ahead) -> None:
    streams = gp.Stream(), gp.Stream()
    patience_ends = time.monotonic() + PATIENCE_S
    both, total = 1.0, 1.0
    while both >= 0.9 * total:
        assert time.monotonic() < patience_ends, "the streams never worked at a time"
        events = [(gp.Event(), gp.Event()) for _ in streams]
        with ahead(*streams):
            period = native.CellTime()
            for stream, (begin, _) in zip(streams, events, strict=True):
                begin.record(stream)
                for _ in range(10):
                    spin(MS, stream)
            period.end()
            for stream, (_, end) in zip(streams, events, strict=True):
                end.record(stream)
        ns, launches = _settled(period)
        assert launches == 20
        first = events[0][0]
        (from_a, to_a), (from_b, to_b) = ((_elapsed_ns(first, begin), _elapsed_ns(first, end)) for begin, end in events)
        both = max(to_a, to_b) - min(from_a, from_b) - max(0, max(from_a, from_b) - min(to_a, to_b))
        total = to_a - from_a + to_b - from_b
        _check(ns, 10 * MS, both, abs_ns=200_000)


@pytest.mark.parametrize("wait", [True, False])
def test_pauses_do_not_count(spin: Launch, wait: bool) -> None:
    period = native.CellTime()
    begins = time.perf_counter_ns()
    for _ in range(4):
        spin(MS)
        if wait:
            gp.synchronize()
        else:
            _run_dry(gp.default_stream())
        time.sleep(PAUSE_S)
    whole = time.perf_counter_ns() - begins
    ns, launches = _settled(period)
    assert launches == 4
    assert 4 * LEAST_NS < ns < whole - 4 * 0.5 * PAUSE_S * 1e9


def test_an_end_that_nobody_marked_is_not_guessed_and_then_learnt(spin: Launch, ahead: Ahead) -> None:
    """Three launches, no wait, a pause: only the first of them is marked, the first time."""
    found, stream = [], gp.Stream()  # which has learnt nothing
    for _ in range(3):
        with ahead(stream):
            period = native.CellTime()
            for _ in range(3):
                spin(MS, stream)
        _run_dry(stream)
        time.sleep(PAUSE_S)
        spin(1, stream)
        found.append(_settled(period)[1])
    assert found == [2, 4, 4]


def test_periods_nest(spin: Launch, ahead: Ahead) -> None:
    with ahead():
        outer = native.CellTime()
        spin(10 * MS)
        inner = native.CellTime()
        spin(10 * MS)
        spin(10 * MS)
        inner.end()
        spin(10 * MS)
        outer.end()
    ns, launches = _settled(outer)
    inner_ns, inner_launches, pending, _ = inner.read()
    assert (launches, inner_launches, pending) == (4, 2, False)
    assert inner_ns > 20 * LEAST_NS and ns - inner_ns > 20 * LEAST_NS


def test_a_graph_is_timed_as_a_whole(spin: Launch, ahead: Ahead) -> None:
    stream = gp.Stream()
    with stream.capture() as graph:
        for _ in range(5):
            spin(MS)
    begin, end = gp.Event(), gp.Event()
    with ahead(stream):
        period = native.CellTime()
        begin.record(stream)
        for _ in range(2):
            graph.launch(stream)
        period.end()
        end.record(stream)
    ns, launches = _settled(period)
    assert launches == 10
    _check(ns, 10 * MS, _elapsed_ns(begin, end))


def test_nothing_is_timed_where_nobody_wants_it(spin: Launch) -> None:
    native.set_launch_timing("off")
    period = native.CellTime()
    spin(MS)
    assert _settled(period) == (0, 0)
    with pytest.raises(ValueError, match="'sometimes'"):
        native.set_launch_timing("sometimes")
    assert native.launch_timing() == "off"


def test_a_change_of_timing_ends_what_it_timed(spin: Launch) -> None:
    period = native.CellTime()
    spin(MS)
    native.set_launch_timing("off")
    spin(MS)
    native.set_launch_timing("exact")
    spin(MS)
    assert _settled(period)[1] == 2


def test_a_stream_may_go_before_the_period(spin: Launch) -> None:
    period = native.CellTime()
    for _ in range(3):
        stream = gp.Stream()
        spin(MS, stream)
        del stream
    ns, launches = _settled(period)
    assert launches == 3 and ns > 3 * LEAST_NS


def test_tasks_are_timed_by_the_scheduler_alone(spin: Launch) -> None:
    before, measured = _core.counters()["task_ns"], native.measured_launches()
    period = native.CellTime()
    with Scheduler(workers=1) as scheduler:
        scheduler.submit(lambda: [spin(MS) for _ in range(5)]).result(timeout=PATIENCE_S)
        spin(MS)
        ns, launches = _settled(period)
    assert (launches, native.measured_launches() - measured) == (1, 5)
    assert ns > LEAST_NS
    end = time.monotonic() + PATIENCE_S
    while _core.counters()["task_ns"] - before <= 5 * LEAST_NS and time.monotonic() < end:
        time.sleep(0.001)  # booked by the gate's thread, which may rest
    assert _core.counters()["task_ns"] - before > 5 * LEAST_NS


def test_periods_come_and_go_while_a_task_launches_without_the_interpreter(spin: Launch) -> None:
    out, measured, periods = gp.zeros(1), native.measured_launches(), 0
    bound = gp.jit(SOURCE, func="spin")[1, 1]
    with Scheduler(workers=1) as scheduler:
        task = scheduler.submit(lambda: [native.launch_many(bound, (out, 1), 500) for _ in range(4)])
        while not task.done() or periods == 0:
            assert _settled(native.CellTime())[1] == 0
            periods += 1
        task.result(timeout=PATIENCE_S)
    assert native.measured_launches() - measured == 2000


def test_a_forked_process_times_nothing(spin: Launch) -> None:
    period = native.CellTime()
    spin(MS)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            period.end()
            nothing = (0, 0, False, False)
            status = 0 if period.read() == nothing == native.CellTime().read() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert _settled(period)[1] == 1


def test_many_stretches_keep_few_events(spin: Launch) -> None:
    """Each launch is a stretch here: events come back while the period goes on."""
    native.set_launch_timing("exact")
    period = native.CellTime()
    for _ in range(20):
        for _ in range(300):
            spin(1)
        gp.synchronize()
    assert _settled(period)[1] == 6000
