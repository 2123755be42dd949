"""Ctrl-C while the device is busy: the prompt comes back long before the work ends, and the session stays usable."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core

pytestmark = pytest.mark.usefixtures("backend_name")

# One thread, one dependent multiply-add after the other: about 0.1 s on a GPU as on a CPU.
SLOW = """
extern "C" __global__ void slow(float* out, int steps) {
    float x = out[0];
    for (int i = 0; i < steps; ++i) x = x * 0.999f + 0.001f;
    out[0] = x;
}
"""
LAUNCHES = 50
STEPS = 40_000_000


@pytest.fixture
def busy() -> Iterator[gp.GPUArray]:
    """A chain of kernels of several seconds is on its way; what an interrupt leaves of it is waited for at the end."""
    kernel = gp.jit(SLOW, func="slow")
    out = gp.ones(1)
    launch = kernel[1, 1]
    launch(out, 1)
    gp.synchronize()
    for _ in range(LAUNCHES):
        launch(out, STEPS)
    yield out
    gp.synchronize()


def interrupted_after(call: Callable[[], object]) -> float:
    """Seconds from the signal to the exception that ends the call."""
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    back = time.perf_counter()
    timer.join()
    return back - sent[0]


def check_usable() -> None:
    gp.synchronize()
    x = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal((gp.from_numpy(x) + gp.from_numpy(x)).to_numpy(), x + x)


def test_synchronize_can_be_interrupted(busy: gp.GPUArray) -> None:
    assert interrupted_after(gp.synchronize) < 0.5
    check_usable()


def test_a_copy_that_waits_can_be_interrupted(busy: gp.GPUArray) -> None:
    assert interrupted_after(busy.to_numpy) < 0.5
    check_usable()


def test_a_stream_and_an_event_can_be_interrupted(busy: gp.GPUArray) -> None:
    event = gp.Event()
    event.record()
    assert interrupted_after(event.synchronize) < 0.5
    check_usable()


def test_nothing_leaks_through_an_interrupt() -> None:
    out = gp.ones(1)
    launch = gp.jit(SLOW, func="slow")[
        1, 1
    ]  # before the work: the driver may wait for running kernels when it loads code
    used = _core.pool_stats(0).used
    for _ in range(3):
        for _ in range(20):
            launch(out, STEPS)
        temporary = gp.empty(1 << 20)
        assert interrupted_after(gp.synchronize) < 0.5
        del temporary
        gp.synchronize()
    assert _core.pool_stats(0).used == used


def test_a_dropped_kernel_waits_for_nothing() -> None:
    out = gp.ones(1)
    kernels = [gp.jit(SLOW, func="slow") for _ in range(10)]
    begin = time.perf_counter()
    while kernels:
        kernels.pop()[1, 1](out, STEPS)  # about 1 s of work in all, each kernel object gone at once
    assert time.perf_counter() - begin < 0.5
    assert np.isfinite(out.to_numpy()).all()
