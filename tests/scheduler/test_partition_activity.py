"""A partition's usage counts what its tasks had the device do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.memory import TransferEngine
from pygpukit.scheduler import Scheduler

PATIENCE_S = 60
KERNELS, COPIES = 5, 3
STEP = """
extern "C" __global__ void step(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}
"""
NOTHING = {"kernels": 0, "transfers": 0, "pending": (0, 0), "ms": 0.0}


@pytest.fixture
def scheduler(backend_name: str) -> Iterator[Scheduler]:
    with Scheduler() as made:
        made.create_partition("p", bandwidth=0.2)
        made.create_partition("idle", bandwidth=0.2)
        yield made


@pytest.fixture(scope="module")
def kernel() -> gp.JITKernel:
    return gp.jit(STEP, name="step.cu")


def counted(scheduler: Scheduler, partition: str) -> dict[str, Any]:
    found = scheduler.partitions.get(partition)
    assert found is not None
    usage = found.usage
    return {
        "kernels": usage.total_kernels,
        "transfers": usage.total_transfers,
        "pending": (usage.pending_kernels, usage.pending_transfers),
        "ms": usage.compute_time_ms,
    }


def work(kernel: gp.JITKernel) -> float:
    """KERNELS kernels and COPIES copies: to the device, on it, from it."""
    x = gp.from_numpy(np.zeros(256, "float32"))
    y = gp.empty(256)
    for _ in range(KERNELS):
        kernel[1, 256](x, 256)
    native.copy(y, x)
    return float(y.to_numpy()[0])


def test_kernels_copies_and_device_time(scheduler: Scheduler, kernel: gp.JITKernel) -> None:
    tasks = [scheduler.submit(work, kernel, partition="p") for _ in range(3)]
    assert [task.result(PATIENCE_S) for task in tasks] == [KERNELS] * 3
    figures = [task.stats() for task in tasks]
    assert [(one.kernels, one.transfers) for one in figures] == [(KERNELS, COPIES)] * 3
    found = counted(scheduler, "p")
    assert (found["kernels"], found["transfers"], found["pending"]) == (3 * KERNELS, 3 * COPIES, (0, 0))
    assert found["ms"] == pytest.approx(sum(one.gpu_ns for one in figures) / 1e6) and found["ms"] > 0
    scheduler.submit(work, kernel).result(PATIENCE_S)  # in no partition
    work(kernel)  # in no task
    assert counted(scheduler, "p") == found and counted(scheduler, "idle") == NOTHING
    lines = scheduler.prometheus().splitlines()
    assert f'pygpukit_partition_kernels_total{{partition="p"}} {3 * KERNELS}' in lines
    assert f'pygpukit_partition_transfers_total{{partition="p"}} {3 * COPIES}' in lines


def test_a_graph_is_its_kernels(scheduler: Scheduler, kernel: gp.JITKernel) -> None:
    def replay() -> float:
        x = gp.from_numpy(np.zeros(256, "float32"))
        stream = gp.Stream()
        with stream.capture() as graph:
            kernel.launcher(1, 256, stream=stream)(x, 256)
            kernel.launcher(1, 256, stream=stream)(x, 256)
        for _ in range(2):
            graph.launch(stream)
        stream.synchronize()
        return float(x.to_numpy()[0])

    assert scheduler.submit(replay, partition="p").result(PATIENCE_S) == 4
    assert (counted(scheduler, "p")["kernels"], counted(scheduler, "p")["transfers"]) == (4, 2)


def test_asynchronous_transfers_count_until_they_have_ended(scheduler: Scheduler) -> None:
    seen = []

    def move() -> int:
        source = np.arange(1 << 20, dtype="float32")
        array = gp.empty(1 << 20)
        with TransferEngine() as engine:
            last = None
            for _ in range(4):
                last = engine.to_device(array, source, after=() if last is None else last)
            seen.append(counted(scheduler, "p")["pending"])
        return int(array.to_numpy()[-1])

    assert scheduler.submit(move, partition="p").result(PATIENCE_S) == (1 << 20) - 1
    found = counted(scheduler, "p")
    assert (found["kernels"], found["transfers"], found["pending"]) == (0, 5, (0, 0))
    assert seen[0][0] == 0 and 0 <= seen[0][1] <= 4


def test_a_partition_begins_with_nothing(scheduler: Scheduler, kernel: gp.JITKernel) -> None:
    scheduler.submit(work, kernel, partition="p").result(PATIENCE_S)
    scheduler.resize_partition("p", bandwidth=0.1)
    assert counted(scheduler, "p")["kernels"] == KERNELS, "a new size changes nothing"
    scheduler.delete_partition("p")
    scheduler.create_partition("p", bandwidth=0.2)
    assert counted(scheduler, "p") == NOTHING
