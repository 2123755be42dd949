"""Memory that a worker maps stays on the device, and only as long as the worker maps it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import process_functions as work
import pytest
from process_help import P, with_process
from scheduler_help import PATIENCE_S

import pygpukit as gp
from pygpukit import _core
from pygpukit.scheduler import Scheduler
from pygpukit.worker import Worker, WorkerTaskError

F = "worker_functions"


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker("exports") as started:
        yield started


def evict(array: gp.GPUArray) -> None:
    """Out and back, by its contents."""
    expected = array.to_numpy()
    _core.pool_evict(array.device, array.block)
    assert not array.resident
    np.testing.assert_array_equal(gp.add(array, gp.zeros(array.shape)).to_numpy(), expected)


def test_an_array_can_leave_after_the_call(worker: Worker) -> None:
    array, neighbour = gp.ones(100), gp.ones(100)  # in one segment
    worker.call(f"{F}:add_one", array)
    evict(array)
    evict(neighbour)
    worker.call(f"{F}:add_one", array)  # mapped anew
    assert float(array.to_numpy().sum()) == 300


def test_a_failed_call_holds_nothing(worker: Worker) -> None:
    array = gp.ones(100)
    with pytest.raises(WorkerTaskError):
        worker.call(f"{F}:fail", array)
    evict(array)


@pytest.mark.parametrize("end", ["kill", "close", "restart"])
def test_what_the_worker_keeps_stays_until_it_ends(worker: Worker, end: str) -> None:
    array = gp.ones(100)
    worker.call(f"{F}:keep", array)
    worker.call(f"{F}:echo", 1)
    with pytest.raises(RuntimeError, match="another process shares its segment"):
        _core.pool_evict(array.device, array.block)
    getattr(worker, end)()
    evict(array)


def test_a_call_that_cannot_be_sent_exports_nothing(worker: Worker) -> None:
    array = gp.ones(100)
    with pytest.raises(TypeError):
        worker.call(f"{F}:echo", object(), array=array)
    worker.kill()
    with pytest.raises(Exception, match="restart"):
        worker.call(f"{F}:add_one", array)
    evict(array)


def test_a_task_of_a_process_leaves_its_arguments_free() -> None:
    scheduler = with_process(Scheduler(total_memory="100MB", start=False))
    array = gp.from_numpy(np.arange(100, dtype=np.float32))
    try:
        result = scheduler.submit(work.doubled, array, **P).result(PATIENCE_S)
        np.testing.assert_array_equal(result.to_numpy(), 2 * np.arange(100, dtype=np.float32))
        evict(array)
        with pytest.raises(ZeroDivisionError):
            scheduler.submit(work.divide_by_zero, array, **P).result(PATIENCE_S)
        evict(array)
    finally:
        scheduler._shut(PATIENCE_S)
