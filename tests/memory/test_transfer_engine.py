"""Asynchronous transfers and pinned memory, on both backends."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import DTypeError, InvalidSpecError, ShapeError, TransferCancelledError
from pygpukit.memory import TransferEngine, is_pinned, pinned_empty, pinned_stats
from pygpukit.scheduler import Scheduler

pytestmark = pytest.mark.usefixtures("backend_name")

KIB, MIB = 1 << 10, 1 << 20
PATIENCE_S = 30.0


@pytest.fixture
def engine() -> Iterator[TransferEngine]:
    """One whose pieces are small, so that little data makes many."""
    made = TransferEngine(chunk_bytes=64 * KIB, in_flight_bytes=128 * KIB)
    yield made
    made.close()


@pytest.fixture
def blocked() -> Iterator[gp.Stream]:
    """A stream that stays busy until the test has ended; what comes after it waits."""
    stream = gp.Stream()
    source = "__global__ void hold(int *flag) { while (*(volatile int *)flag == 0) {} }"
    hold = gp.jit(source, func="hold")
    flag = gp.zeros(1, "int32")
    gp.synchronize()
    with stream:
        hold[1, 1](flag)
    yield stream
    with gp.Stream():
        native.copy_from_host(flag, np.ones(1, np.int32))
    stream.synchronize()


def numbers(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**31, count, dtype=np.int32)


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("count", [0, 1, 1000, 300_001])
def test_there_and_back(engine: TransferEngine, pinned: bool, count: int) -> None:
    host = pinned_empty(count, np.int32) if pinned else np.empty(count, np.int32)
    host[:] = numbers(count)
    array = gp.empty(count, "int32")
    there = engine.to_device(array, host)
    assert there.wait(PATIENCE_S) is array
    back = engine.to_host(array)
    found = back.wait(PATIENCE_S)
    np.testing.assert_array_equal(found, host)
    assert is_pinned(found) or count == 0
    assert (there.state, there.done, there.nbytes, there.direction) == ("Completed", True, 4 * count, "H2D")
    stats = engine.stats()
    assert (stats["H2D"]["completed"], stats["D2H"]["bytes"], stats["queued"]) == (1, 4 * count, 0)
    assert stats["H2D"]["peak_in_flight_bytes"] <= 128 * KIB
    mine = back.stats()
    assert (mine["landed"], mine["state"]) == (4 * count, "Completed") and mine["took_s"] >= 0


def test_on_the_device(engine: TransferEngine) -> None:
    source, target = gp.from_numpy(numbers(100_000)), gp.zeros(100_000, "int32")
    assert engine.copy(target, source).wait(PATIENCE_S) is target
    np.testing.assert_array_equal(target.to_numpy(), numbers(100_000))


def test_uses_of_an_array_come_after_its_transfers(engine: TransferEngine) -> None:
    host = pinned_empty(1_000_000, np.float32)
    host[:] = np.arange(1_000_000) % 1000
    array = gp.zeros(1_000_000)
    for round_ in range(3):
        host += 1
        transfer = engine.to_device(array, host)
        doubled = array * 2  # nobody waited
        np.testing.assert_array_equal(doubled.to_numpy(), host * 2)
        transfer.wait(PATIENCE_S)
        with gp.Stream():
            np.testing.assert_array_equal((array + round_).to_numpy(), host + round_)


def test_a_transfer_comes_after_what_makes_its_array(engine: TransferEngine) -> None:
    array = gp.zeros(1_000_000)
    stream = gp.Stream()
    gp.default_stream().synchronize()
    with stream:
        for _ in range(20):
            array += 1
        transfer = engine.to_host(array)
        array += 100  # comes after the copy
    assert (transfer.wait(PATIENCE_S) == 20).all()
    assert (array.to_numpy() == 120).all()


def test_transfers_of_one_array_keep_their_order(engine: TransferEngine) -> None:
    array = gp.zeros(200_000, "int32")
    hosts = [numbers(200_000, seed) for seed in range(4)]
    for priority, host in enumerate(hosts):
        engine.to_device(array, host, priority=priority)
    np.testing.assert_array_equal(engine.to_host(array, priority=9).wait(PATIENCE_S), hosts[-1])


def test_parts_of_an_array_do_not_wait_for_each_other(engine: TransferEngine, blocked: gp.Stream) -> None:
    array = gp.zeros(2000, "int32")
    gp.default_stream().synchronize()
    waiting = engine.to_device(array[:1000], numbers(1000), stream=blocked)
    engine.to_device(array[1000:], numbers(1000, 1)).wait(PATIENCE_S)
    assert waiting.state == "Queued"
    waiting.cancel()


def test_urgent_ones_pass_and_waiting_ones_hold_up_nobody(engine: TransferEngine, blocked: gp.Stream) -> None:
    arrays = [gp.zeros(100_000, "int32") for _ in range(4)]
    gp.default_stream().synchronize()
    event = blocked.record_event()
    waiting = engine.to_device(arrays[0], numbers(100_000), priority=9, after=event)
    behind = engine.to_device(arrays[1], numbers(100_000), after=waiting)
    engine.to_device(arrays[2], numbers(100_000)).wait(PATIENCE_S)
    engine.to_device(arrays[3], numbers(100_000), stream=gp.Stream()).wait(PATIENCE_S)
    assert (waiting.state, behind.state) == ("Queued", "Queued")
    with pytest.raises(TimeoutError, match="still Queued"):
        waiting.wait(0.01)
    assert waiting.cancel() and not waiting.cancel()
    with pytest.raises(TransferCancelledError) as told:
        waiting.wait(PATIENCE_S)
    assert told.value.landed == 0 and waiting.done
    assert behind.wait(PATIENCE_S) is arrays[1]


def test_an_end_can_be_awaited(engine: TransferEngine, blocked: gp.Stream) -> None:
    array, host = gp.zeros(50_000, "int32"), numbers(50_000)
    gp.default_stream().synchronize()

    async def both() -> np.ndarray:
        await engine.to_device(array, host)
        lost = engine.to_device(gp.zeros(5, "int32"), numbers(5), stream=blocked)
        lost.cancel()
        with pytest.raises(TransferCancelledError):
            await lost
        return await engine.to_host(array)

    np.testing.assert_array_equal(asyncio.run(both()), host)


def test_giving_up_the_await_cancels_the_transfer(engine: TransferEngine, blocked: gp.Stream) -> None:
    waiting = engine.to_device(gp.zeros(5, "int32"), numbers(5), stream=blocked)

    async def given_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waiting, 0.01)

    asyncio.run(given_up())
    assert not waiting.cancel(), "it was cancelled before"
    with pytest.raises(TransferCancelledError):
        waiting.wait(PATIENCE_S)


def test_what_is_copied_lives_as_long_and_no_longer(engine: TransferEngine, blocked: gp.Stream) -> None:
    class Host(np.ndarray):
        """An array that can be watched."""

    array, host = gp.zeros(50_000, "int32"), np.zeros(50_000, np.int32).view(Host)
    gp.default_stream().synchronize()
    seen = [weakref.ref(array), weakref.ref(host)]
    transfer = weakref.ref(engine.to_device(array, host, after=blocked.record_event()))
    del array, host
    gc.collect()
    assert all(one() is not None for one in [*seen, transfer])
    transfer().cancel()
    end = time.monotonic() + PATIENCE_S
    while any(one() is not None for one in [*seen, transfer]) and time.monotonic() < end:
        time.sleep(0.01)
    assert [one() for one in [*seen, transfer]] == [None, None, None]


def test_from_many_threads(engine: TransferEngine) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        for round_ in range(5):
            host = numbers(60_000, 100 * seed + round_)
            array = gp.empty(60_000, "int32")
            engine.to_device(array, host, priority=round_ % 2)
            if not (engine.to_host(array).wait(PATIENCE_S) == host).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and engine.stats()["H2D"]["completed"] == 20


def test_tasks_that_contend_can_use_one(engine: TransferEngine) -> None:
    def work(seed: int) -> bool:
        right = True
        for round_ in range(4):
            host = numbers(60_000, 10 * seed + round_)
            array = gp.empty(60_000, "int32")
            engine.to_device(array, host)
            for _ in range(5):
                array = array + 1
            right &= bool((engine.to_host(array).wait(PATIENCE_S) == host + 5).all())
        return right

    with Scheduler(workers=2) as scheduler:
        tasks = [scheduler.submit(work, seed, bandwidth=0.4) for seed in range(2)]
        assert [task.result(PATIENCE_S) for task in tasks] == [True, True]


def test_leaving_waits_and_a_closed_engine_refuses() -> None:
    array, host = gp.zeros(500_000, "int32"), numbers(500_000)
    with TransferEngine() as engine:
        transfer = engine.to_device(array, host)
    assert transfer.state == "Completed"
    with pytest.raises(RuntimeError, match="closed"):
        engine.to_device(array, host)
    np.testing.assert_array_equal(array.to_numpy(), host)


def test_a_captured_stream_takes_no_transfer_and_its_uses_wait_for_one(engine: TransferEngine) -> None:
    array, host = gp.zeros(200_000, "int32"), numbers(200_000)
    stream = gp.Stream()
    gp.synchronize()
    transfer = engine.to_device(array, host)
    with stream.capture() as graph:
        doubled = array * 2
        with pytest.raises(gp.GPUError, match="captured"):
            engine.to_device(array, host)
    assert transfer.done, "nothing can be ordered after it in a capture"
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_array_equal(doubled.to_numpy(), host * 2)
    assert engine.stats()["H2D"]["submitted"] == 1


def test_pinned_memory_is_used_again() -> None:
    gc.collect()  # or memory that earlier tests left could come back in between, and be taken first
    first = pinned_empty((300, 7), "float64")
    assert first.flags.writeable and first.shape == (300, 7) and is_pinned(first[5:9])
    address = first.__array_interface__["data"][0]
    hits, view = pinned_stats()["pool_hits"], first[3:]
    del first
    view[:] = 1  # keeps the memory
    other = pinned_empty((300, 7), "float64")
    assert other.__array_interface__["data"][0] != address
    del view
    again = pinned_empty((300, 7), "float64")
    assert again.__array_interface__["data"][0] == address
    stats = pinned_stats()
    assert stats["pool_hits"] > hits and 0 < stats["hit_rate"] <= 1
    assert not is_pinned(np.zeros(5))
    with pytest.raises(ShapeError, match="negative"):
        pinned_empty((3, -1))


def test_bad_arguments_are_refused_before_anything_moves(engine: TransferEngine) -> None:
    array, host = gp.zeros((4, 6)), np.zeros((4, 6), np.float32)
    read_only = host.copy()
    read_only.flags.writeable = False
    for error, call in [
        (TypeError, lambda: engine.to_device(host, host)),
        (TypeError, lambda: engine.to_device(array, array)),
        (ShapeError, lambda: engine.to_device(array, host[:2])),
        (ShapeError, lambda: engine.to_device(array.T, host.T)),
        (ShapeError, lambda: engine.to_device(array.T, np.zeros((6, 4), np.float32))),
        (DTypeError, lambda: engine.to_device(array, host.astype(np.float64))),
        (ValueError, lambda: engine.to_host(array, read_only)),
        (ShapeError, lambda: engine.copy(array, gp.zeros(24))),
        (DTypeError, lambda: engine.copy(array, gp.zeros((4, 6), "int32"))),
        (InvalidSpecError, lambda: engine.to_device(array, host, after="tomorrow")),
        (InvalidSpecError, lambda: TransferEngine(chunk_bytes=0)),
        (InvalidSpecError, lambda: TransferEngine(chunk_bytes=9, in_flight_bytes=8)),
    ]:
        with pytest.raises(error):
            call()
    assert engine.stats()["H2D"]["submitted"] == 0
    engine.to_device(array, host).wait(PATIENCE_S)
