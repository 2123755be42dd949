"""A worker with a CUDA context of its own: shared arrays, and faults that stay there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.worker import Worker, WorkerError, WorkerTaskError, WorkerTimeoutError

F = "worker_functions"
G = "gpu_worker_functions"


@pytest.fixture()
def worker() -> Iterator[Worker]:
    with Worker("gpu test") as own:
        yield own


def test_both_sides_see_each_others_writes(worker: Worker) -> None:
    host = np.random.default_rng(3).random(5_000_000, dtype=np.float32)
    array = gp.from_numpy(host)
    address = array.device_ptr
    worker.call(f"{F}:add_one", array)
    np.testing.assert_array_equal(array.to_numpy(), host + np.float32(1))
    assert array.device_ptr == address
    doubled = gp.add(array, array)
    worker.call(f"{F}:scale", doubled, 0.5)
    np.testing.assert_array_equal(doubled.to_numpy(), host + np.float32(1))


def test_an_illegal_address_costs_the_worker_only(worker: Worker) -> None:
    mine = gp.ones(1000)
    with pytest.raises(WorkerTaskError) as caught:
        worker.call(f"{G}:write_to_nowhere")
    assert "ILLEGAL" in caught.value.remote_traceback.upper()
    with pytest.raises(WorkerError):  # its context is lost for good
        worker.call(f"{F}:add_one", mine)
    assert gp.add(mine, mine).to_numpy().sum() == 2000
    worker.restart()
    worker.call(f"{F}:add_one", mine)
    assert mine.to_numpy().sum() == 2000


def test_an_endless_kernel_is_killed_with_its_worker(worker: Worker) -> None:
    with pytest.raises(WorkerTimeoutError):
        worker.call(f"{G}:spin_for", 60.0, timeout_s=2)
    worker.restart()
    mine = gp.ones(1000)
    worker.call(f"{F}:scale", mine, 3.0)
    assert mine.to_numpy().sum() == 3000
