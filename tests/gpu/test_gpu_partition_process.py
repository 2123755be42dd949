"""Partitions of isolation "process" on the device: real faults cost the worker, other tasks and this process go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import gpu_worker_functions as faults
import numpy as np
import process_functions as work
import pytest

import pygpukit as gp
from pygpukit.core.errors import DriverError, OutOfMemoryError, TaskCancelledError
from pygpukit.scheduler import MB, Scheduler

pytestmark = pytest.mark.gpu
PATIENCE_S = 60
P: dict[str, Any] = {"partition": "p"}


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler(start=False)
    made.create_partition("p", memory="1GB", bandwidth=0.2, isolation="process")
    made.create_partition("q", memory="1GB", bandwidth=0.2, isolation="process")
    yield made
    made._shut(PATIENCE_S)


def test_arrays_are_shared_in_and_copied_out(scheduler: Scheduler) -> None:
    host = np.arange(3_000_000, dtype=np.float32)
    x = gp.from_numpy(host)
    task = scheduler.submit(work.scale, x, 3.0, **P)
    task.result(PATIENCE_S)
    np.testing.assert_array_equal(x.to_numpy(), 3 * host)
    assert task.stats().launches >= 1 and task.stats().gpu_ns > 0
    got = scheduler.submit(work.several, x, **P).result(PATIENCE_S)
    assert got["same"] is x
    np.testing.assert_array_equal(got["new"].to_numpy(), 6 * host)
    scheduler.submit(work.several, gp.zeros(3_000_000), **P).result(PATIENCE_S)
    np.testing.assert_array_equal(got["new"].to_numpy(), 6 * host)


@pytest.mark.parametrize(("kernel", "codes"), [("wild", {700, 717}), ("skewed", {716}), ("trapped", {715, 719})])
def test_a_fault_costs_the_worker_alone(scheduler: Scheduler, kernel: str, codes: set[int]) -> None:
    x, y = gp.ones(1000), gp.ones(1000)
    other = scheduler.submit(work.pid, partition="q").result(PATIENCE_S)
    beside = [scheduler.submit(work.scale, y, 2.0, partition="q") for _ in range(5)]
    bad = scheduler.submit(work.fault, kernel, **P)
    queued = scheduler.submit(work.scale, x, 3.0, **P)
    with pytest.raises(DriverError, match="faulted in the worker of partition 'p'") as caught:
        bad.result(PATIENCE_S)
    assert caught.value.code in codes and kernel in str(caught.value) and bad.reason == "StickyDeviceError"
    queued.result(PATIENCE_S)
    for task in beside:
        task.result(PATIENCE_S)
    assert float(gp.sum(x).to_numpy()) == 3000 and float(gp.sum(y).to_numpy()) == 32000
    assert scheduler.submit(work.pid, partition="q").result(PATIENCE_S) == other
    lost = {record.partition: record.losses for record in scheduler.worker_processes()}
    assert lost == {"p": 1, "q": 0}


def test_a_kernel_without_an_end_is_ended(scheduler: Scheduler) -> None:
    """It is bounded by the clock all the same."""
    scheduler.submit(work.pid, **P).result(PATIENCE_S)
    late = scheduler.submit(faults.spin_for, 20.0, **P, deadline=1.0)
    with pytest.raises(TaskCancelledError, match="deadline"):
        late.result(PATIENCE_S)
    cancelled = scheduler.submit(faults.spin_for, 20.0, **P)
    threading.Timer(1.0, cancelled.cancel).start()
    with pytest.raises(TaskCancelledError):
        cancelled.result(PATIENCE_S)
    x = gp.ones(1000)
    scheduler.submit(work.scale, x, 3.0, **P).result(15)  # sooner than either would have ended
    assert float(gp.sum(x).to_numpy()) == 3000


def test_the_quota_bounds_what_it_allocates(scheduler: Scheduler) -> None:
    assert scheduler.submit(work.allocate, 900 * MB, **P).result(PATIENCE_S) == 900 * MB
    with pytest.raises(OutOfMemoryError):
        scheduler.submit(work.allocate, 1100 * MB, **P).result(PATIENCE_S)
