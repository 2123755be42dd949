"""The documented classes over execution contexts: MultiLLMController and KernelDispatcher."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from context_help import BUSY, COUNT, HOLD, PATIENCE_S, step_kernel, zeros
from context_help import no_context_is_left as no_context_is_left

import _pygpukit_rust as rust
import pygpukit as gp
from _pygpukit_rust import dispatching
from pygpukit import scheduler
from pygpukit._core import native
from pygpukit.core.errors import InvalidSpecError
from pygpukit.scheduler import MB


def test_the_documented_controller():
    controller, x = rust.MultiLLMController(), zeros()
    assert not controller.is_initialized()
    controller.initialize(0, 0, 64 * MB)
    assert controller.is_initialized() and controller.available_vram() == 64 * MB
    stream = controller.create_context("llm", 8 * MB)
    assert stream == controller.get_stream_id("llm") and controller.context_count() == 1
    assert controller.list_contexts() == ["llm"] and scheduler.list_contexts() == []
    stats = controller.get_context("llm")
    assert stats.state == rust.ContextState.Idle and stats.max_vram == 8 * MB and stats.stream_id == stream
    assert controller.start_context_session("llm") and controller.is_context_session_active("llm")
    held = gp.zeros(MB)
    assert controller.used_vram() == 4 * MB and controller.get_context("llm").buffer_count == 1
    assert controller.end_context_session("llm") and not controller.is_context_session_active("llm")
    kernel = step_kernel()
    gp.synchronize()
    request = rust.AsyncKernelRequest.linear(scheduler.kernel_handle(kernel), COUNT).with_args([x, 3, COUNT])
    future = controller.dispatch_async("llm", request)
    assert controller.get_future("llm", future.id) is future
    assert future.wait().success and future.state == rust.FutureState.Completed
    assert controller.get_pending_futures("llm") == [] and not controller.cancel_future("llm", future.id)
    counts = controller.async_stats("llm")
    assert (counts.total_dispatched, counts.completed_count, counts.pending_count) == (1, 1, 0)
    for method, arguments in (
        ("mark_future_launched", ()),
        ("mark_future_completed", (0.1,)),
        ("mark_future_failed", ("",)),
    ):
        with pytest.warns(DeprecationWarning, match="changes nothing"):
            getattr(controller, method)("llm", future.id, *arguments)
    with pytest.warns(DeprecationWarning), pytest.raises(MemoryError):
        controller.track_allocation("llm", 1, 5 * MB)
    with pytest.warns(DeprecationWarning):
        assert controller.track_allocation("llm", 1, 4 * MB)
    assert controller.used_vram() == 4 * MB, "only the pool counts"
    assert controller.get_context("none") is None and controller.get_stream_id("none") is None
    with pytest.raises(ValueError, match="no context 'none'; there are llm"):
        controller.dispatch_async("none", request)
    controller.start_session()
    assert controller.is_session_active()
    controller.end_session()
    del held
    assert controller.destroy_context("llm") and not controller.destroy_context("llm")
    controller.reset()
    assert not controller.is_initialized() and controller.stats().context_count == 0


def test_the_documented_dispatcher(backend_name):
    dispatcher, kernel = rust.KernelDispatcher(max_in_flight=2), gp.jit(BUSY, func="busy")
    handle, out = scheduler.kernel_handle(kernel), gp.zeros(1)
    rounds = 2_000_000 if backend_name == "cuda" else 50_000
    config = rust.LaunchConfig((1, 1, 1), (32, 1, 1), 0, 7)
    hold, flag = gp.jit(HOLD, func="hold"), gp.ones(1, "int32")
    kernel[1, 32](out, 1)
    hold[1, 1](flag)
    gp.synchronize()  # a driver may load code only while nothing runs

    def fill_up():
        """As many as may be in flight, which end when they are let go."""
        native.copy_from_host(flag, np.zeros(1, np.int32))
        gp.synchronize()
        one = rust.LaunchConfig((1, 1, 1), (1, 1, 1), 0, 7)
        held = [dispatcher.queue(scheduler.kernel_handle(hold), one, [flag], priority=9) for _ in range(2)]
        end = time.monotonic() + PATIENCE_S
        while dispatcher.get_in_flight(7) != held and time.monotonic() < end:
            time.sleep(0.001)
        assert dispatcher.get_in_flight(7) == held

    def let_go():
        with gp.Stream():
            native.copy_from_host(flag, np.ones(1, np.int32))

    fill_up()
    try:
        ids = [dispatcher.queue(handle, config, [out, rounds], "task", priority=i // 4) for i in range(12)]
        assert [request.priority for request in dispatcher.get_ready(100)] == [2] * 4 + [1] * 4 + [0] * 4
        assert len(dispatcher.get_in_flight(7)) == 2
    finally:
        let_go()
    while dispatcher.has_pending_work():
        assert len(dispatcher.get_in_flight(7)) <= 2
        waiting = [request.priority for request in dispatcher.get_ready(100)]
        assert waiting == sorted(waiting, reverse=True)
    requests = [dispatcher.get_request(req_id) for req_id in ids]
    assert [request.state for request in requests] == [rust.dispatch.KernelState.Completed] * 12
    assert all(request.state.is_terminal() and request.duration() > 0 for request in requests)
    launched = sorted(requests, key=lambda request: request.launched_at)
    assert [request.priority for request in launched] == [2] * 4 + [1] * 4 + [0] * 4
    stats = dispatcher.stats()
    assert (stats.total_queued, stats.completed_count, stats.launches_per_stream) == (14, 14, {7: 14})
    assert dispatcher.get_requests_for_task("task") == requests
    fill_up()
    try:
        more = [dispatcher.queue_for_task("more", handle, config, [out, rounds]) for _ in range(20)]
        assert dispatcher.cancel(more[-1]) and not dispatcher.cancel(ids[0]) and not dispatcher.cancel(10_000)
        assert dispatcher.get_request(more[-1]).state == rust.dispatch.KernelState.Cancelled
        wrong = dispatcher.queue(handle, rust.LaunchConfig.linear(100), [out])
    finally:
        let_go()
    while dispatcher.has_pending_work():
        time.sleep(0.001)
    assert "KernelArgumentError" in dispatcher.get_request(wrong).error and dispatcher.stats().failed_count == 1
    with pytest.raises(InvalidSpecError, match="no handle of a kernel"):
        dispatcher.queue(handle + 1000, config)
    with pytest.warns(DeprecationWarning, match="changes nothing"):
        assert dispatcher.mark_completed(ids[0])
    dispatcher.gc()
    assert dispatcher.get_request(ids[0]) is None and dispatcher.stats().total_queued == 37
    dispatcher.clear()


def test_a_request_that_is_seen_launched_is_counted_and_has_its_time(monkeypatch):
    """However long the dispatcher's thread rests before it notes them."""
    dispatcher, kernel, x = rust.KernelDispatcher(), step_kernel(), zeros()
    seen = []

    class Clock:
        @staticmethod
        def time():
            if threading.current_thread().name == "pygpukit-dispatch":
                seen.extend(request.state for request in dispatcher.get_requests_for_task("task"))
            return time.time()

    monkeypatch.setattr(dispatching, "time", Clock)
    config = rust.LaunchConfig.linear(COUNT)
    request = dispatcher.get_request(dispatcher.queue(scheduler.kernel_handle(kernel), config, [x, 3, COUNT], "task"))
    while dispatcher.has_pending_work():
        time.sleep(0.001)
    assert seen == [rust.dispatch.KernelState.Queued]
    assert request.launched_at <= request.completed_at and dispatcher.stats().launches_per_stream == {0: 1}
    dispatcher.clear()
