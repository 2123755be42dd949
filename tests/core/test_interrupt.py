"""Ctrl-C while the device is busy: the prompt comes back long before the work ends, and the session stays usable."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native

pytestmark = pytest.mark.usefixtures("backend_name")

# One thread, one dependent multiply-add after the other: about 0.1 s on a GPU as on a CPU.
SLOW = """
extern "C" __global__ void slow(float* out, int steps) {
    float x = out[0];
    for (int i = 0; i < steps; ++i) x = x * 0.999f + 0.001f;
    out[0] = x;
    out[1] += 1;
}
"""
STEPS = 40_000_000
HOLD = "__global__ void hold(int *flag) { while (*(volatile int *)flag == 0) {} }"


def many() -> int:
    """Launches that take several seconds; on the simulation many more, since there an interrupt drops them."""
    return 50 if gp.backend() == "cuda" else 500


@pytest.fixture
def busy() -> Iterator[gp.GPUArray]:
    """many() kernels are on their way; what an interrupt leaves of them is waited for at the end."""
    kernel = gp.jit(SLOW, func="slow")
    out = gp.zeros(2)
    launch = kernel[1, 1]
    launch(out, 0)
    gp.synchronize()
    out.fill(0)
    for _ in range(many()):
        launch(out, STEPS)
    yield out
    gp.synchronize()


def interrupt(call: Callable[[], object], out: gp.GPUArray) -> None:
    """Ctrl-C during the call, which waits for many() launches, ends it long before they do."""
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()  # a signal that came before could end more than the call
        call()
    left = not gp.default_stream().query() or out.to_numpy()[1] < many()
    assert left, "the call waited for the work"
    timer.join()


def check_usable() -> None:
    gp.synchronize()
    x = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal((gp.from_numpy(x) + gp.from_numpy(x)).to_numpy(), x + x)


def test_synchronize_can_be_interrupted(busy: gp.GPUArray) -> None:
    interrupt(gp.synchronize, busy)
    check_usable()


def test_a_copy_that_waits_can_be_interrupted(busy: gp.GPUArray) -> None:
    interrupt(busy.to_numpy, busy)
    check_usable()


def test_a_stream_and_an_event_can_be_interrupted(busy: gp.GPUArray) -> None:
    event = gp.Event()
    event.record()
    interrupt(event.synchronize, busy)
    check_usable()


def test_nothing_leaks_through_an_interrupt() -> None:
    out = gp.zeros(2)
    # Before the work: the driver may wait for running kernels when it loads code.
    launch = gp.jit(SLOW, func="slow")[1, 1]
    gc.collect()  # what earlier tests left is not collected meanwhile
    used = _core.pool_stats(0).used
    for _ in range(3):
        out.fill(0)
        for _ in range(many()):
            launch(out, STEPS)
        temporary = gp.empty(1 << 20)
        interrupt(gp.synchronize, out)
        del temporary
        gp.synchronize()
    assert _core.pool_stats(0).used == used


def test_a_dropped_kernel_waits_for_nothing() -> None:
    hold, flag, out = gp.jit(HOLD, func="hold"), gp.ones(1, "int32"), gp.zeros(2)
    hold[1, 1](flag)
    kernels = [gp.jit(SLOW, func="slow") for _ in range(10)]
    for kernel in kernels:
        kernel[1, 1](out, 1)  # a driver may load code only while nothing runs
    del kernel
    flag.fill(0)
    gp.synchronize()
    stream = gp.Stream()

    def let_go() -> None:
        with stream:
            native.copy_from_host(flag, np.ones(1, np.int32))

    if_it_waits = threading.Timer(60, let_go)
    if_it_waits.start()
    hold[1, 1](flag)
    while kernels:
        kernels.pop()[1, 1](out, 1)  # each kernel object is gone at once
    left = not gp.default_stream().query()
    if_it_waits.cancel()
    let_go()
    assert left and out.to_numpy()[1] == 20
