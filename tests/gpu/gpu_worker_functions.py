"""Functions that test_gpu_worker.py runs in a worker: kernels that go wrong."""

from __future__ import annotations

import pygpukit as gp

BAD = """
extern "C" __global__ void nowhere(float* x, long long offset) { x[offset] = 1.0f; }
extern "C" __global__ void spin(double seconds) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while ((now - begin) * 1e-9 < seconds);
}
"""


def write_to_nowhere() -> None:
    x = gp.zeros(1)
    gp.jit(BAD, func="nowhere")[1, 1](x, 1 << 45)
    gp.synchronize()


def spin_for(seconds: float) -> None:
    gp.jit(BAD, func="spin")[1, 1](seconds)
    gp.synchronize()
