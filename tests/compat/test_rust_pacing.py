"""The documented pacing engine: streams really get the shares they were promised, and what the gate counted is told."""

from __future__ import annotations

import contextlib
import gc
import threading
import time

import numpy as np
import pytest

import _pygpukit_rust as rust
import pygpukit as gp
from pygpukit import scheduler
from pygpukit._core import native
from pygpukit.core.errors import ContextDestroyedError, InvalidSpecError
from pygpukit.core.stream import paced_streams

PATIENCE_S = 60
BUSY = """
extern "C" __global__ void busy(float *out, int rounds) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
    if (x == -1.0f) out[0] = x;
}
"""


@pytest.fixture
def engine(backend_name):
    made = rust.KernelPacingEngine()
    yield made
    made.reset()
    scheduler.reset()
    assert not paced_streams


@pytest.fixture
def work(backend_name):
    """Twenty launches of some 100 us each on either backend, without the interpreter."""
    bound = gp.jit(BUSY, func="busy")[(64, 256) if backend_name == "cuda" else (1, 32)]
    arguments = (gp.zeros(1), 20_000 if backend_name == "cuda" else 500)
    gp.synchronize()
    return lambda: native.launch_many(bound, arguments, 20)


@contextlib.contextmanager
def contending(places, work):
    """In each place a thread that launches without end."""
    stop, failed = threading.Event(), []

    def launch(place):
        try:
            with place:
                while not stop.is_set():
                    work()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=launch, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert not failed


def wait_until(seen, what):
    end = time.monotonic() + PATIENCE_S
    while not seen():
        assert time.monotonic() < end, what
        time.sleep(0.005)


def shares_of(streams):
    """Of the device in the last second, as the gate measured it."""
    found = {context.stream_id: context.stats.share_1s for context in scheduler.live_contexts()}
    return [found[stream.id] for stream in streams]


def test_streams_get_what_they_were_promised_and_what_is_left_over(engine, work):
    low, high = gp.Stream(), gp.Stream()
    assert engine.allocate_stream(low.id, 0.2) and engine.allocate_stream(high.id, 0.6)

    def as_promised():
        first, second = shares_of((low, high))
        return first > 0.02 and 2 < second / first < 4.5  # however long others keep a simulated device's processor

    with contending((low, high), work):
        wait_until(as_promised, "three times as much for the one as for the other")
    gp.synchronize()
    stats, total = [engine.stream_stats(stream.id) for stream in (low, high)], engine.stats()
    assert [one.bandwidth for one in stats] == [0.2, 0.6] and all(one.throttled_count > 0 for one in stats)
    assert all(one.throttled_count <= one.total_launches for one in stats)
    assert total.total_launches == sum(one.total_launches for one in stats)
    assert total.total_throttled == total.total_waited == sum(one.throttled_count for one in stats)
    assert (total.stream_count, total.used_bandwidth, total.available_bandwidth) == (2, 0.8, pytest.approx(0.2))


def test_decisions_tell_whether_work_waits_and_whose_turn_it_is(engine, work):
    stream, rival, others = gp.Stream(), gp.Stream(), rust.KernelPacingEngine()

    def decision(kind):
        found = []
        wait_until(lambda: found.append(engine.should_launch(stream.id)) or found[-1].decision_type == kind, kind)
        assert not found[-1].can_launch() and found[-1].wait_ms() >= 0.1
        return found[-1]

    assert engine.allocate_stream(stream.id, 0.5) and others.allocate_stream(rival.id, 1)
    with contending((stream, rival), work):
        assert not decision("Wait").is_throttled(), "it gets a third, which is less than 0.5"
        assert engine.allocate_stream(stream.id, 0.01) and others.allocate_stream(rival.id, 0.01)
        assert decision("Throttle").is_throttled(), "it gets a half, which is more than 0.01"
    gp.synchronize()
    idle = engine.should_launch(stream.id)
    assert idle.can_launch() and not idle.is_throttled() and idle.wait_ms() == 0
    others.reset()


def test_launches_are_counted_and_work_is_done_in_order(engine):
    stream, other = gp.Stream(), gp.Stream()
    window = rust.KernelPacingEngine(rust.PacingConfig(window_ms=1e6))
    assert engine.allocate_stream(other.id, 0.5) and window.allocate_stream(stream.id, 0.5)
    with stream as entered:
        assert entered is stream and gp.current_stream() == stream
        x = gp.zeros(1000)
        with other:
            assert gp.current_stream() == other and scheduler.is_session_active()
        assert gp.current_stream() == stream
        for _ in range(5):
            x = x + 1
    assert gp.current_stream().id == 0 and not scheduler.is_session_active()
    stream.synchronize()
    np.testing.assert_array_equal(x.to_numpy(), np.full(1000, 5, dtype=np.float32))
    stats = window.stream_stats(stream.id)
    assert stats.stream_id == stream.id and stats.total_launches >= 5 and stats.launches_in_window >= 5
    assert engine.stream_stats(other.id).launches_in_window == engine.stream_stats(other.id).total_launches == 0
    launches = window.stats().total_launches
    window.release_stream(stream.id)
    assert window.stream_stats(stream.id) is None and window.stats().total_launches == launches
    with stream:
        assert not scheduler.is_session_active(), "a released stream is as it was"
        gp.zeros(10)
    window.reset()
    assert window.stats() == rust.PacingStats(0, 0.0, 1.0, 0, 0, 0)


def test_release_gives_the_device_what_waits_for_a_turn(engine, work):
    stream, rival, others = gp.Stream(), gp.Stream(), rust.KernelPacingEngine()
    assert engine.allocate_stream(stream.id, 0.05) and others.allocate_stream(rival.id, 0.9)
    with contending((rival,), work):
        wait_until(lambda: others.stream_stats(rival.id).total_launches > 20, "the rival's first launches")
        with stream:
            work()
        engine.release_stream(stream.id)
        assert engine.stats().total_launches == 20
        assert engine.allocate_stream(stream.id, 0.1), "it is free"
        with stream:
            engine.release_stream(stream.id)
            with pytest.raises(ContextDestroyedError):
                gp.zeros(1)
    assert gp.current_stream().id == 0
    others.reset()


def test_the_stream_of_a_context_takes_its_share(engine):
    context, other = scheduler.create_context("chat"), scheduler.create_context("speech", share=0.5)
    assert engine.allocate_stream(context.stream_id, 0.4) and context.share == 0.4
    assert context.core.share_ppm == 400_000
    assert not engine.allocate_stream(context.stream_id, 0.6) and context.share == 0.4, "the other one has 0.5"
    assert not engine.allocate_stream(other.stream_id, 0.1) and other.share == 0.5, "by create_context()"
    assert not rust.KernelPacingEngine().allocate_stream(context.stream_id, 0.1), "by another engine"
    with context:
        gp.ones(100) + 1
    assert engine.stream_stats(context.stream_id).total_launches == context.stats.launches > 0
    engine.release_stream(context.stream_id)
    assert context.share == 0 and scheduler.get_context("chat") is context
    assert engine.allocate_stream(context.stream_id, 0.5)
    context.destroy()
    assert engine.stream_stats(context.stream_id) is None and engine.stats().used_bandwidth == 0


def test_refusals_change_nothing(backend_name):
    engine = rust.KernelPacingEngine(rust.PacingConfig(total_bandwidth=0.8))
    first, second = gp.Stream(), gp.Stream()
    gone = gp.Stream().id
    assert engine.allocate_stream(first.id, 0.5)
    before = engine.stats()
    assert not engine.allocate_stream(second.id, 0.4) and not engine.allocate_stream(first.id, 0.9)
    assert not any(engine.allocate_stream(unknown, 0.1) for unknown in (0, gone, 10**6, -1))
    for wrong in (0, -0.1, 1.1, float("nan"), "much", None):
        with pytest.raises(InvalidSpecError) as caught:
            engine.allocate_stream(second.id, wrong)
        assert caught.value.field == "bandwidth"
    for call in (engine.release_stream, engine.should_launch):
        with pytest.raises(InvalidSpecError, match=f"no share of this engine; {first.id} have") as caught:
            call(second.id)
        assert caught.value.field == "stream_id"
    assert engine.stream_stats(second.id) is None and engine.stats() == before
    assert engine.allocate_stream(second.id, 0.3) and engine.allocate_stream(first.id, 0.4)
    assert engine.stats().available_bandwidth == pytest.approx(0.1)
    for field, wrong in (("total_bandwidth", 0), ("total_bandwidth", 1.5), ("window_ms", 0), ("min_interval_ms", -1)):
        with pytest.raises(InvalidSpecError) as caught:
            rust.PacingConfig(**{field: wrong})
        assert caught.value.field == field
    del engine, call
    gc.collect()
    assert not paced_streams, "an engine that is gone has promised nothing"


def test_bookkeeping_by_hand_warns_and_changes_nothing(engine):
    stream = gp.Stream()
    assert engine.allocate_stream(stream.id, 0.5)
    for call in (
        lambda: engine.record_launch(stream.id),
        lambda: engine.record_throttle(stream.id),
        engine.record_wait,
    ):
        with pytest.warns(DeprecationWarning, match="changes nothing"):
            call()
    assert engine.stats() == rust.PacingStats(1, 0.5, 0.5, 0, 0, 0)
    with pytest.warns(DeprecationWarning, match="adaptive=False changes nothing"):
        rust.PacingConfig(adaptive=False)
