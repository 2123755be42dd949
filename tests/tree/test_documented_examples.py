"""The documented examples for arrays, custom kernels, scheduler and pool, word for word, on both backends."""

from __future__ import annotations

from typing import Any

import numpy as np

ARRAYS = """
import pygpukit as gp

# allocate, compute, transfer
x = gp.zeros((1024, 1024), dtype="float32")
y = gp.ones((1024, 1024), dtype="float32")
z = gp.add(x, y)
w = gp.matmul(x, y)
arr = z.to_numpy()
garr = gp.from_numpy(arr)
"""

OPERATOR = "C = A @ B                                  # for GPUArrays A, B"

KERNEL = """
# custom kernel
src = '''
extern "C" __global__
void scale(float* x, float factor, int n) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < n) x[idx] *= factor;
}
'''
if gp.is_nvrtc_available():                # on the simulation: True when the CPU simulator can compile
    kernel = gp.jit(src, func="scale")
    kernel(x, factor=0.5, n=x.size)
"""

POOL = """
from pygpukit.memory import MemoryPool
from pygpukit.scheduler import Scheduler
pool = MemoryPool(1024 * 1024 * 100)                                # 100 MB
scheduler = Scheduler(total_memory=pool.quota)
"""

TASKS = """
task = scheduler.submit(fn, memory="512MB")
task = scheduler.submit(fn, bandwidth=0.20)                         # 20 % compute share
task = scheduler.submit(fn, policy="guaranteed", memory="1GB", bandwidth=0.10)
stats = scheduler.stats(task_id)
"""

RUST = """
# Rust classes directly
import _pygpukit_rust as rust
pool = rust.MemoryPool(quota=100 * 1024 * 1024, enable_eviction=True)
block = pool.allocate(4096)
evaluator = rust.QosPolicyEvaluator(total_memory=8*1024**3, total_bandwidth=1.0)
task = rust.QosTaskMeta.guaranteed("task-1", "Critical Task", 256*1024*1024)
result = evaluator.evaluate(task)
manager = rust.PartitionManager(rust.PartitionConfig(total_memory=8*1024**3))
manager.create_partition("inference", "Inference",
    rust.PartitionLimits().memory(4*1024**3).compute(0.5))
"""


def run(source: str, **names: Any) -> dict[str, Any]:
    exec(compile(source, "documented example", "exec"), names)
    return names


def test_arrays(backend_name: str) -> None:
    names = run(ARRAYS)
    np.testing.assert_array_equal(names["arr"], np.ones((1024, 1024), np.float32))
    np.testing.assert_array_equal(names["w"].to_numpy(), np.zeros((1024, 1024), np.float32))
    np.testing.assert_array_equal(names["garr"].to_numpy(), names["arr"])
    assert names["arr"].dtype == np.float32


def test_matmul_operator(backend_name: str) -> None:
    import pygpukit as gp

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 48), np.float32), rng.standard_normal((48, 80), np.float32)
    result = run(OPERATOR, A=gp.from_numpy(a), B=gp.from_numpy(b))["C"].to_numpy()
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.linalg.norm(result - expected) / np.linalg.norm(expected) < 1e-6


def test_custom_kernel(backend_name: str) -> None:
    import pygpukit as gp

    x = gp.from_numpy(np.arange(1000, dtype=np.float32))
    names = run(KERNEL, gp=gp, x=x)
    assert "kernel" in names, "the compiler is not available"
    np.testing.assert_array_equal(x.to_numpy(), np.arange(1000, dtype=np.float32) * np.float32(0.5))


def test_pool_and_scheduler(backend_name: str) -> None:
    names = run(POOL)
    assert names["pool"].quota == 104857600
    names["scheduler"].close()


def test_tasks(backend_name: str) -> None:
    from pygpukit.scheduler import Scheduler

    ran: list[int] = []
    scheduler = Scheduler(total_memory=8 << 30)
    first = scheduler.submit(lambda: ran.append(0))
    first.result(timeout=60)
    names = run(TASKS, scheduler=scheduler, fn=lambda: ran.append(1), task_id=first.id)
    names["task"].result(timeout=60)
    scheduler.close()
    assert ran == [0, 1, 1, 1]


def test_rust_classes(backend_name: str) -> None:
    names = run(RUST)
    assert names["result"].is_admitted() and names["result"].reserved_memory == names["task"].memory_request
    inference = names["manager"].get("inference")
    assert (inference.limits.memory_quota, inference.limits.compute_share) == (4 * 1024**3, 0.5)
    pool, block = names["pool"], names["block"]
    assert isinstance(block, int)
    assert pool.stats().used >= 4096
    pool.free(block)
    assert pool.stats().used == 0
