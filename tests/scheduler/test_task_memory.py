"""A task's memory limit: what its function allocates is held to it by the pool, and nobody else is."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pool_help import comes_to_use

import pygpukit as gp
from pygpukit import _core, scheduler
from pygpukit._core import native
from pygpukit.core.errors import OutOfMemoryError
from pygpukit.scheduler import MB, Scheduler

PATIENCE_S = 60
GUARANTEED: dict[str, Any] = {"policy": "guaranteed", "memory": "8MB", "bandwidth": 0.2}


@pytest.fixture(autouse=True)
def nothing_is_left(backend_name: str) -> Iterator[None]:
    gp.zeros(1)
    gc.collect()
    before = _core.pool_stats().used
    yield
    native.synchronize()
    assert comes_to_use(before)


@pytest.fixture
def desk() -> Iterator[Scheduler]:
    made = Scheduler(total_memory="100MB", workers=2, start=False)
    yield made
    made._shut(PATIENCE_S)


def empty(megabytes: int) -> gp.GPUArray:
    return gp.empty(megabytes * MB, dtype="uint8")


def too_much() -> tuple[str, int, int, int, int]:
    """4 MB are held, 8 more are asked for, 4 are left."""
    kept = gp.zeros(MB)
    with pytest.raises(OutOfMemoryError) as caught:
        _ = kept.astype("float64")
    error = caught.value
    assert f"'{error.tenant}' asked for 8 MiB and holds 4 MiB of the 8 MiB" in str(error)
    assert (kept + kept).nbytes == 4 * MB
    return error.tenant, error.requested, error.used, error.limit, error.free


@pytest.mark.parametrize("request_", [GUARANTEED, {"memory_limit": "8MB"}, {"memory": "1MB", "memory_limit": "8MB"}])
def test_the_limit_holds_for_whatever_the_function_calls(desk: Scheduler, request_: dict[str, Any]) -> None:
    told = desk.submit(too_much, name="summary", **request_).result(PATIENCE_S)
    assert told == ("summary", 8 * MB, 4 * MB, 8 * MB, 4 * MB)


def test_what_is_not_caught_is_the_tasks_failure(desk: Scheduler) -> None:
    task = desk.submit(empty, 9, name="greedy", **GUARANTEED)
    with pytest.raises(OutOfMemoryError, match="'greedy' asked for 9 MiB and holds 0 B of the 8 MiB that it may"):
        task.result(PATIENCE_S)
    assert (task.phase, task.reason) == ("Failed", "OutOfMemory")


def test_without_a_limit_a_request_bounds_nothing(desk: Scheduler) -> None:
    for request in ({}, {"memory": "8MB"}, {"memory": "8MB", "bandwidth": 0.2, "bandwidth_limit": 0.2}):
        assert desk.submit(lambda: empty(20).nbytes, **request).result(PATIENCE_S) == 20 * MB


def test_nobody_else_is_held_to_it(desk: Scheduler) -> None:
    entered, leave = threading.Event(), threading.Event()

    def holds(megabytes: int) -> int:
        kept = empty(megabytes)
        entered.set()
        assert leave.wait(PATIENCE_S)
        return kept.nbytes

    first = desk.submit(holds, 8, **GUARANTEED)
    desk.start()
    assert entered.wait(PATIENCE_S)
    second = desk.submit(holds, 7, **GUARANTEED)
    assert empty(20).nbytes == 20 * MB, "not this thread"
    leave.set()
    assert (first.result(PATIENCE_S), second.result(PATIENCE_S)) == (8 * MB, 7 * MB)
    assert {desk.submit(lambda: empty(20).nbytes).result(PATIENCE_S) for _ in range(4)} == {20 * MB}, "nor the threads"
    by_hand = Scheduler(total_memory="100MB", start=False)
    task = by_hand.submit(too_much, **GUARANTEED)
    assert by_hand.step() is task and task.done()
    assert empty(20).nbytes == 20 * MB, "nor the one that ran it"
    by_hand.close()


def test_what_is_evicted_still_counts(desk: Scheduler) -> None:
    def work() -> tuple[int, list[int]]:
        arrays = [gp.full(MB, i, dtype="float32") for i in (1, 2)]
        gp.synchronize()
        for array in arrays:
            _core.pool_evict(0, array.block)
        with pytest.raises(OutOfMemoryError) as caught:
            empty(1)
        return caught.value.used, [int(array.to_numpy()[-1]) for array in arrays]

    assert desk.submit(work, **GUARANTEED).result(PATIENCE_S) == (8 * MB, [1, 2])


def test_what_outlives_a_task_counts_for_no_later_one(desk: Scheduler) -> None:
    results = [desk.submit(empty, 8, name="again", **GUARANTEED).result(PATIENCE_S) for _ in range(3)]
    used = _core.pool_stats().used
    assert used >= 24 * MB and desk.reserved_memory == 0
    names = {row[0]: _core.name(row[3]) for row in _core.pool_blocks()}
    assert {names[array.block] for array in results} == {"again"}, "the pool still knows whose they were"
    results.pop()
    assert comes_to_use(used - 8 * MB)


def test_a_step_within_a_task_leaves_it_its_limit(desk: Scheduler) -> None:
    inner = Scheduler(total_memory="100MB", start=False)

    def work() -> list[int]:
        done = inner.submit(lambda: empty(20).nbytes)
        failed = inner.submit(empty, 3, memory_limit="2MB")
        inner.step()
        inner.step()
        assert (done.phase, failed.reason) == ("Succeeded", "OutOfMemory")
        with pytest.raises(OutOfMemoryError) as caught:
            empty(9)
        return [done.result(PATIENCE_S), caught.value.limit]

    assert desk.submit(work, **GUARANTEED).result(PATIENCE_S) == [20 * MB, 8 * MB]
    assert empty(20).nbytes == 20 * MB
    inner.close()


def test_a_retry_begins_with_nothing(desk: Scheduler) -> None:
    kept = []

    def fails_twice() -> int:
        kept.append(empty(6))
        if len(kept) < 3:
            raise ValueError("not yet")
        return len(kept)

    assert desk.submit(fails_twice, retry=2, **GUARANTEED).result(PATIENCE_S) == 3


def test_in_a_session_of_a_context_the_contexts_limit_holds(desk: Scheduler) -> None:
    context = scheduler.create_context("chat", "4MB")

    def work() -> tuple[str, str]:
        mine = empty(6)
        with context:
            kept = empty(4)
            with pytest.raises(OutOfMemoryError) as inside:
                empty(1)
        with pytest.raises(OutOfMemoryError) as outside:
            empty(3)
        assert mine.nbytes + kept.nbytes == 10 * MB
        return inside.value.tenant, outside.value.tenant

    try:
        assert desk.submit(work, name="summary", **GUARANTEED).result(PATIENCE_S) == ("chat", "summary")
    finally:
        scheduler.reset()
