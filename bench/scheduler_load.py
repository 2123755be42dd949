"""Tenants of the scheduler's benchmarks: kernels of a chosen length, launched without end, that count their ends."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

TOP_PRIORITY = -5  # the driver's levels of stream priority: 0 to this
QUEUED_US = 2000.0  # device time that a tenant on a plain stream keeps in flight
ALONE_US = 20_000.0  # device time of one sample of a tenant alone

# `ended`: the address of a number that the last block raises by one in its end, or 0. It goes as a number, so that the
# runtime orders no launch behind those who read it.
SOURCE = """
extern "C" __global__ void NAME(float *out, int rounds, size_t ended) {
    float x = threadIdx.x;
    for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 1.0f);
    if (x == -1.0f) out[0] = x;
    if (ended && blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) atomicAdd((unsigned long long *)ended, 1ull);
}
"""
TRIAD = """
extern "C" __global__ void NAME(float *out, int n, size_t ended) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = 1.5f * out[i + n] + out[i + 2 * n];
    if (ended && blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) atomicAdd((unsigned long long *)ended, 1ull);
}
"""


class EndCount:
    """The number of kernels that have ended, in device memory that they write: who launches them has no hand in it."""

    def __init__(self) -> None:
        import pygpukit as gp
        from pygpukit._core import native

        self._count = gp.zeros(1, dtype="uint64")
        native.pin(self._count)  # its address is known to kernels only
        native.synchronize()
        self.address = int(self._count.device_ptr)
        self._stream = native.Stream(TOP_PRIORITY)

    def read(self) -> int:
        """By a copy on a stream of its own, which waits for no kernel."""
        from pygpukit._core import native

        before, data = native.current_stream(), bytearray(8)
        native.set_current_stream(self._stream)
        try:
            native.copy_to_host(data, self._count)
        finally:
            native.set_current_stream(before)
        return int.from_bytes(data, sys.byteorder)


@dataclass
class Tenant:
    """One kernel of a certain length."""

    name: str
    launch: Callable[[int], object]  # so many times
    kernel_us: float  # alone, one after the other
    ended: Callable[[], int]  # kernels, until now

    @property
    def chunk(self) -> int:
        """Launches in about half a millisecond of the device."""
        return max(1, min(128, int(500 / self.kernel_us)))

    def alone_us(self) -> float:
        """The time of a kernel alone, one after the other, at the clocks of this moment."""
        return _each_us(self.launch, max(20, int(ALONE_US / self.kernel_us)))


def _each_us(launch: Callable[[int], object], launches: int) -> float:
    from pygpukit._core import native

    samples = []
    for _ in range(3):
        native.synchronize()
        begin = time.perf_counter()
        launch(launches)
        native.synchronize()
        samples.append((time.perf_counter() - begin) * 1e6 / launches)
    return median(samples)


def make_tenant(name: str, length_us: float, waves: int = 1, of_memory: bool = False) -> Tenant:
    """A tenant whose kernel takes so long, or as little as the device can where that is more.

    waves: how many times as many blocks it has as the device runs at once. of_memory: it reads and writes; else it
    multiplies and adds.
    """
    import pygpukit as gp
    from pygpukit._core import native

    on_cuda = native.backend_name() == "cuda"
    multiprocessors = int(native.device_info(native.current_device())["multiprocessor_count"])
    symbol = name.replace(".", "_")
    kernel = gp.jit((TRIAD if of_memory else SOURCE).replace("NAME", symbol), func=symbol)
    bound: Any = kernel[8 * multiprocessors * waves, 256] if on_cuda else kernel[2 * waves, 32]
    short, many = (1_000, 4_000_000 if on_cuda else 20_000) if of_memory else (100, 100_000 if on_cuda else 2_000)
    out, ends = gp.zeros(3 * 32 * many if of_memory else 1), EndCount()

    def kernel_us(amount: int) -> float:
        launches = max(20, int(ALONE_US / length_us))
        return _each_us(lambda count: native.launch_many(bound, (out, amount, ends.address), count), launches)

    kernel_us(short)  # the first launches load the code
    short_us = kernel_us(short)
    each = (kernel_us(many) - short_us) / (many - short)
    amount = min(32 * many, max(1, short + int((length_us - short_us) / each)))
    return Tenant(
        name,
        lambda count: native.launch_many(bound, (out, amount, ends.address), count),
        kernel_us(amount),
        ends.read,
    )


def task_loop(tenant: Tenant, stop: threading.Event) -> None:
    """Launches as fast as its scheduler lets it."""
    while not stop.is_set():
        tenant.launch(tenant.chunk)


def plain_loop(tenant: Tenant, stop: threading.Event, priority: int) -> None:
    """The same on a stream of its own, with a bounded queue, as a program without a scheduler does it.

    priority: of the stream, as the driver counts: lower is more urgent.
    """
    from pygpukit._core import native

    native.set_current_stream(native.Stream(priority))
    stream = native.current_stream()
    half = max(1, int(QUEUED_US / tenant.kernel_us / 2))
    events = [native.Event(False), native.Event(False)]
    turn = 0
    while not stop.is_set():
        events[turn].synchronize()
        tenant.launch(half)
        events[turn].record(stream)
        turn = 1 - turn
    native.synchronize()
