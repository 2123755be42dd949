"""Streams, events, and the documented low-level copies; on both backends."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.compat import raw_copies as memory
from pygpukit.core.stream import get_stream_manager

pytestmark = pytest.mark.usefixtures("backend_name")


def test_with_makes_a_stream_current_and_nests() -> None:
    outer, inner = gp.Stream(), gp.Stream("high")
    start = gp.current_stream()
    assert start == gp.default_stream()
    with outer as entered:
        assert entered is outer
        assert gp.current_stream() == outer
        with inner:
            assert gp.current_stream() == inner
            with outer:
                assert gp.current_stream() == outer
            assert gp.current_stream() == inner
        assert gp.current_stream() == outer
    assert gp.current_stream() == start


def test_the_stream_is_left_also_when_the_body_raises() -> None:
    stream = gp.Stream()
    with pytest.raises(ZeroDivisionError), stream:
        1 / 0
    assert gp.current_stream() == gp.default_stream()


def test_current_stream_is_the_threads_own() -> None:
    found: list[bool] = []
    with gp.Stream():
        thread = threading.Thread(target=lambda: found.append(gp.current_stream() == gp.default_stream()))
        thread.start()
        thread.join()
    assert found == [True]


def test_work_on_streams_ordered_by_an_event() -> None:
    first, second = gp.Stream(), gp.Stream()
    host = np.arange(100_000, dtype=np.float32)
    with first:
        x = gp.from_numpy(host)
        y = x * 2
        done = first.record_event()
    second.wait_event(done)
    with second:
        z = y + 1
    second.synchronize()
    assert second.query()
    np.testing.assert_array_equal(z.to_numpy(), host * 2 + 1)


def test_waiting_for_what_is_no_event_is_refused() -> None:
    stream = gp.Stream()
    for wrong in ("x", 0, stream):
        with pytest.raises(TypeError, match="wait_event: event="):
            stream.wait_event(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="record_event: event="):
            stream.record_event(wrong)  # type: ignore[arg-type]


def test_memory_is_not_reused_under_another_streams_feet() -> None:
    stream = gp.Stream()
    expected = np.full(1 << 18, 3, np.float32)
    for _ in range(20):
        x = gp.full(1 << 18, 3, "float32")
        ready = gp.default_stream().record_event()
        stream.wait_event(ready)
        with stream:
            y = x + 0
        del x
        gp.full(1 << 18, 9, "float32")
        stream.synchronize()
        np.testing.assert_array_equal(y.to_numpy(), expected)


def test_properties() -> None:
    low, high = gp.Stream(), gp.Stream(gp.StreamPriority.HIGH)
    assert low.priority is gp.StreamPriority.LOW
    assert high.priority is gp.StreamPriority.HIGH
    assert low != high
    assert low.handle != high.handle
    assert low.id != high.id
    assert low.__cuda_stream__() == (0, low.handle)
    assert repr(high) == f"Stream(id={high.id}, priority=high)"
    assert gp.default_stream().handle == 0
    with pytest.raises(gp.InvalidSpecError, match="use 'low' or 'high'"):
        gp.Stream("urgent")


def test_manager() -> None:
    manager = gp.StreamManager()
    stream = manager.create_stream(priority="high")
    assert stream.priority is gp.StreamPriority.HIGH
    manager.synchronize_all()
    manager.destroy_stream(stream)
    with pytest.raises(ValueError):
        manager.destroy_stream(stream)
    assert manager.get_default_stream() == gp.default_stream()
    assert get_stream_manager() is get_stream_manager()


def test_events_measure_time() -> None:
    assert gp.CudaEvent is gp.Event
    start, end = gp.Event(), gp.Event()
    start.record()
    x = gp.ones((256, 256))
    for _ in range(5):
        x = x @ gp.ones((256, 256))
    end.record()
    end.synchronize()
    assert end.query()
    elapsed = start.elapsed_ms(end)
    assert elapsed > 0
    assert gp.event_elapsed_ms(start, end) == elapsed
    assert gp.event_elapsed_us(start, end) == 1000 * elapsed


def test_raw_copies() -> None:
    host = np.arange(10, dtype=np.int32)
    x = gp.zeros(10, "int32")
    memory.copy_to_device(x, host.ctypes.data, 20)
    assert x.to_numpy().tolist() == [0, 1, 2, 3, 4, 0, 0, 0, 0, 0]
    stream = gp.Stream()
    memory.copy_to_device_async(x, host.ctypes.data, 40, stream)
    stream.synchronize()
    np.testing.assert_array_equal(x.to_numpy(), host)
    y = gp.zeros(10, "int32")
    memory.copy_device_to_device_offset(y, 8, x, 4, 12)
    assert y.to_numpy().tolist() == [0, 0, 1, 2, 3, 0, 0, 0, 0, 0]
    memory.copy_device_to_device_async(y, x, stream)
    memory.synchronize()
    np.testing.assert_array_equal(y.to_numpy(), host)
    with pytest.raises(gp.ShapeError, match="bytes 32 to 48 are not inside the array's 40"):
        memory.copy_device_to_device_offset(y, 32, x, 0, 16)
    with pytest.raises(gp.ShapeError, match="not contiguous"):
        memory.copy_to_device(x[::2], host.ctypes.data, 4)
