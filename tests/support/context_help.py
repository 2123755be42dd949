"""What tests of execution contexts share: kernels, work of some length, and that no context is left."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core, scheduler

PATIENCE_S = 60
STEP = """
extern "C" __global__ void step(unsigned *x, unsigned factor, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * factor + i;
}
"""
BUSY = """
extern "C" __global__ void busy(float *out, int rounds) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
    if (x == -1.0f) out[0] = x;
}
"""
HOLD = "__global__ void hold(int *flag) { while (*(volatile int *)flag == 0) {} }"
COUNT = 1000


@pytest.fixture(autouse=True)
def no_context_is_left(backend_name):
    """What a test allocated and did not free counts for its contexts, which are all gone in the end."""
    yield
    scheduler.reset()
    gc.collect()
    assert scheduler.list_contexts() == [] and scheduler.stats().used_vram == 0
    assert not scheduler.is_session_active()


def step_kernel():
    return gp.jit(STEP, func="step")


def zeros():
    return gp.zeros(COUNT, dtype="uint32")


def stepped(times: int, factor: int = 3) -> np.ndarray:
    x = np.zeros(COUNT, dtype=np.uint32)
    for _ in range(times):
        x = x * np.uint32(factor) + np.arange(COUNT, dtype=np.uint32)
    return x


def tenant_of(array) -> str:
    return next(_core.name(row[3]) for row in _core.pool_blocks() if row[0] == array.block)


def launcher(backend_name):
    """Some 100 us of work on either backend, as (kernel, grid, block, arguments)."""
    kernel = gp.jit(BUSY, func="busy")
    out = gp.zeros(1)
    return (kernel, 64, 256, out, 20_000) if backend_name == "cuda" else (kernel, 1, 32, out, 500)


def contend(rival, work, stop):
    with rival:
        while not stop.is_set():
            for _ in range(10):
                work[0][work[1], work[2]](*work[3:])
