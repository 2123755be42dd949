"""What tasks of a partition allocate together stays within its quota, in the pool itself."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest

import pygpukit as gp
from pygpukit.core.errors import OutOfMemoryError
from pygpukit.memory import stats
from pygpukit.scheduler import Scheduler

MIB = 1 << 20
PATIENCE_S = 60


def allocate(nbytes: int) -> gp.GPUArray:
    return gp.zeros(nbytes, dtype="uint8")


def holding(nbytes: int, holds: threading.Event, let_go: threading.Event) -> Callable[[], bool]:
    def hold() -> bool:
        mine = allocate(nbytes)
        holds.set()
        return let_go.wait(PATIENCE_S) and mine.size == nbytes

    return hold


def test_tasks_together_stay_within_the_quota_of_their_partition(backend_name: str) -> None:
    holds, let_go = threading.Event(), threading.Event()
    with Scheduler() as scheduler:
        scheduler.create_partition("narrow", memory="4MB", bandwidth=0.2)
        scheduler.create_partition("free", bandwidth=0.2)
        first = scheduler.submit(holding(3 * MIB, holds, let_go), partition="narrow")
        assert holds.wait(PATIENCE_S)
        refused = scheduler.submit(allocate, 2 * MIB, partition="narrow", memory_limit="3MB")
        with pytest.raises(OutOfMemoryError, match="narrow") as caught:
            refused.result(PATIENCE_S)
        error = caught.value
        assert (error.requested, error.used, error.limit) == (2 * MIB, 3 * MIB, 4 * MIB)
        assert scheduler.submit(allocate, 8 * MIB, partition="free").result(PATIENCE_S).size == 8 * MIB
        assert scheduler.submit(allocate, 8 * MIB).result(PATIENCE_S).size == 8 * MIB, "the default partition"
        scheduler.resize_partition("narrow", memory="8MB", bandwidth=0.2)
        assert scheduler.submit(allocate, 2 * MIB, partition="narrow").result(PATIENCE_S).size == 2 * MIB
        let_go.set()
        assert first.result(PATIENCE_S)


def test_what_a_task_returns_counts_until_it_is_freed(backend_name: str) -> None:
    gc.collect()
    before = stats()["used"]
    with Scheduler() as scheduler:
        scheduler.create_partition("narrow", memory="4MB", borrow_memory="1MB", bandwidth=0.2)
        kept = scheduler.submit(allocate, 3 * MIB, partition="narrow").result(PATIENCE_S)
        assert scheduler.submit(allocate, 2 * MIB, partition="narrow").result(PATIENCE_S).size, "borrowed"
        gc.collect()
        with pytest.raises(OutOfMemoryError):
            scheduler.submit(allocate, 3 * MIB, partition="narrow").result(PATIENCE_S)
        del kept
        gc.collect()
        assert scheduler.submit(allocate, 4 * MIB, partition="narrow").result(PATIENCE_S).size == 4 * MIB
        scheduler.delete_partition("narrow")
        scheduler.create_partition("narrow", memory="2MB", bandwidth=0.2)
        assert scheduler.submit(allocate, 2 * MIB, partition="narrow").result(PATIENCE_S).size == 2 * MIB
    gc.collect()
    assert stats()["used"] == before


def test_what_a_failed_run_held_is_free_for_the_next_one(backend_name: str) -> None:
    runs = []

    def fails_once() -> int:
        mine = allocate(3 * MIB)
        runs.append(mine.size)
        if len(runs) == 1:
            raise RuntimeError("once")
        return mine.size

    gc.collect()
    gc.disable()
    try:
        with Scheduler() as scheduler:
            scheduler.create_partition("narrow", memory="4MB", bandwidth=0.2)
            assert scheduler.submit(fails_once, partition="narrow", retry=1).result(PATIENCE_S) == 3 * MIB
    finally:
        gc.enable()


def test_a_limit_changes_for_tasks_under_way(backend_name: str) -> None:
    holds, let_go = threading.Event(), threading.Event()

    def grow() -> int:
        mine = [allocate(MIB)]
        holds.set()
        assert let_go.wait(PATIENCE_S)
        try:
            mine.extend(allocate(MIB) for _ in range(3))
        except OutOfMemoryError as error:
            return error.limit
        return 0

    with Scheduler() as scheduler:
        scheduler.create_partition("live", memory="8MB", bandwidth=0.2)
        task = scheduler.submit(grow, partition="live")
        assert holds.wait(PATIENCE_S)
        scheduler.resize_partition("live", memory="2MB", bandwidth=0.2)
        let_go.set()
        assert task.result(PATIENCE_S) == 2 * MIB
