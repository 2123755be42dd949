"""Green contexts of the driver, through the table: the multiprocessors that kernels really run on."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.scheduler import Scheduler

SOURCE = """
extern "C" __global__ void where(unsigned *seen, int rounds) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
    if (threadIdx.x == 0) atomicAdd(&seen[sm], x == -1.0f ? 2u : 1u);
}
"""
PATIENCE_S = 60


def where() -> set[int]:
    seen = gp.zeros(1024, "uint32")
    gp.jit(SOURCE, func="where")[4096, 256](seen, 20_000)
    return set(np.flatnonzero(seen.to_numpy()).tolist())


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.25, 0.5, 0.75])
def test_as_many_as_told(share: float) -> None:
    total = gp.get_device_info().multiprocessor_count
    with Scheduler() as scheduler:
        scheduler.create_partition("p", bandwidth=share, isolation="sm")
        own, rest = scheduler.submit(where, partition="p"), scheduler.submit(where)
        a, b = own.result(PATIENCE_S), rest.result(PATIENCE_S)
        view = scheduler.partitions.get("p")
        assert view is not None and len(a) == view.sms >= share * total and len(a) + len(b) == total and not a & b
        scheduler.partitions.delete_partition("p")


def test_many_partitions_and_no_leak() -> None:
    """Spaces come and go, with streams, while tasks run in them."""
    total = gp.get_device_info().multiprocessor_count
    with Scheduler() as scheduler:
        for _ in range(20):
            for name in ("a", "b", "c"):
                scheduler.create_partition(name, bandwidth=0.2, isolation="sm")
            found = [scheduler.submit(where, partition=name) for name in ("a", "b", "c")]
            sets = [task.result(PATIENCE_S) for task in found]
            assert len(set.union(*sets)) == sum(len(one) for one in sets)
            scheduler.resize_partition("b", bandwidth=0.3, isolation="sm")
            scheduler.partitions.clear()
        assert len(scheduler.submit(where).result(PATIENCE_S)) == total


def test_a_graph_runs_where_its_stream_does() -> None:
    def captured() -> set[int]:
        stream = gp.Stream()
        kernel = gp.jit(SOURCE, func="where")
        seen = gp.zeros(1024, "uint32")
        gp.synchronize()
        with stream.capture() as graph:
            kernel[4096, 256](seen, 20_000)
        with stream:
            graph.launch()
        stream.synchronize()
        return set(np.flatnonzero(seen.to_numpy()).tolist())

    with Scheduler() as scheduler:
        scheduler.create_partition("p", bandwidth=0.2, isolation="sm")
        view = scheduler.partitions.get("p")
        found = scheduler.submit(captured, partition="p").result(PATIENCE_S)
        assert view is not None and len(found) == view.sms
        scheduler.partitions.delete_partition("p")
