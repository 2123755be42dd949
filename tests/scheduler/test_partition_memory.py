"""What tasks of a partition allocate together stays within its quota, in the pool itself."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from pool_help import comes_to_use

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
        assert comes_to_use(before + 3 * MIB)
        with pytest.raises(OutOfMemoryError):
            scheduler.submit(allocate, 3 * MIB, partition="narrow").result(PATIENCE_S)
        del kept
        assert comes_to_use(before)
        assert scheduler.submit(allocate, 4 * MIB, partition="narrow").result(PATIENCE_S).size == 4 * MIB
        assert comes_to_use(before)
        scheduler.delete_partition("narrow")
        scheduler.create_partition("narrow", memory="2MB", bandwidth=0.2)
        assert scheduler.submit(allocate, 2 * MIB, partition="narrow").result(PATIENCE_S).size == 2 * MIB
    assert comes_to_use(before)


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


def test_a_first_quota_binds_tasks_under_way(backend_name: str) -> None:
    holds, let_go = threading.Event(), threading.Event()

    def grow() -> int:
        kept = allocate(8 * MIB)
        holds.set()
        assert let_go.wait(PATIENCE_S)
        with pytest.raises(OutOfMemoryError, match="live") as caught:
            allocate(MIB)
        return caught.value.limit - kept.size

    with Scheduler() as scheduler:
        scheduler.create_partition("live", bandwidth=0.2)
        task = scheduler.submit(grow, partition="live")
        assert holds.wait(PATIENCE_S)
        scheduler.resize_partition("live", memory="4MB", bandwidth=0.2)
        let_go.set()
        assert task.result(PATIENCE_S) == -4 * MIB, "what it held it keeps"
        scheduler.resize_partition("live", bandwidth=0.2)
        assert scheduler.submit(allocate, 8 * MIB, partition="live").result(PATIENCE_S).size == 8 * MIB


def test_the_last_size_holds_for_a_task_that_begins_meanwhile(
    backend_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quota changes while its task looks for the device's pool."""
    from pygpukit.core import backend

    ensure, resized = backend.ensure, threading.Event()

    with Scheduler() as scheduler:
        scheduler.create_partition("live", memory="8MB", bandwidth=0.2)
        assert scheduler.submit(allocate, 4 * MIB, partition="live").result(PATIENCE_S).size == 4 * MIB

        def meanwhile() -> backend.Backend:
            if threading.current_thread() is not threading.main_thread():
                scheduler.resize_partition("live", memory="2MB", bandwidth=0.2)
                resized.set()
            return ensure()

        monkeypatch.setattr(backend, "ensure", meanwhile)
        with pytest.raises(OutOfMemoryError) as caught:
            scheduler.submit(allocate, 4 * MIB, partition="live").result(PATIENCE_S)
        assert resized.is_set() and caught.value.limit == 2 * MIB


ELSEWHERE = """
import pygpukit as gp
from pygpukit._core import native
from pygpukit.scheduler import Scheduler

def on_another_device():
    native.set_device(1)
    return gp.empty(1 << 20, dtype="uint8").size

with Scheduler() as scheduler:
    scheduler.create_partition("free", bandwidth=0.2)
    scheduler.create_partition("bound", memory="4MB", bandwidth=0.2)
    for _ in range(8):
        assert scheduler.submit(on_another_device, partition="free").result(60) == 1 << 20
        assert scheduler.submit(native.current_device).result(60) == 0, "a task begins where the one before it was"
    task = scheduler.submit(on_another_device, partition="bound")
    try:
        task.result(60)
    except gp.OutOfMemoryError:
        pass
    else:
        raise SystemExit("it is held to its quota on the first device alone")
"""


def test_a_second_device_is_for_tasks_that_nothing_bounds() -> None:
    if gp.backend() != "sim":
        pytest.skip("two devices are simulated")
    environment = {**os.environ, "PYGPUKIT_SIM": "devices=2", "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", ELSEWHERE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)
    assert done.returncode == 0, done.stderr
