"""The hand-written layer under load on the simulated device: many threads, a faulty stream, two devices."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scheduler_help import wait_until

import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import DriverError
from pygpukit.jit.compile.compiler import compile_source

ONE = (1, 1, 1)
SHIFT = """
extern "C" __global__ void shift(float *x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += by;
}
extern "C" __global__ void fault(float *x) { *(int *)0 = 1; }
"""
PARAMS = [("x", "pointer", 11, 8), ("by", "scalar", 11, 4), ("n", "scalar", 3, 4)]
SECONDS = float(os.environ.get("PYGPUKIT_STRESS_SECONDS", "3"))


@pytest.fixture(scope="module")
def image() -> bytes:
    return compile_source(SHIFT, name="shift").image


def one_round(pick: random.Random, own: native.Stream, shared: native.Stream, image: bytes) -> None:
    """Fills, launches, waits, copies, evicts; everything is made and dropped while others are at work."""
    native.set_current_stream(pick.choice([own, own, shared, None]))
    n = pick.choice([1, 100, 5000, 70000])
    x = gp.full(n, 1, "float32") if pick.random() < 0.5 else gp.from_numpy(np.ones(n, np.float32))
    kernel = native.Kernel(native.Module(image).function("shift"), "shift", PARAMS)
    kernel.bind(((n + 255) // 256, 1, 1), (256, 1, 1))(x, 2.0, n)
    del kernel
    event = native.Event()
    event.record()
    other = native.Stream() if pick.random() < 0.2 else own
    other.wait_event(event)
    native.set_current_stream(other)
    y = x + 1
    if pick.random() < 0.3:
        native.synchronize()
    if pick.random() < 0.1:
        try:
            _core.pool_evict(0, x.block)
        except RuntimeError as busy:
            assert "cannot leave" in str(busy)
    if pick.random() < 0.05:
        _core.pool_trim(0)
    if pick.random() < 0.1:
        _core.telemetry_frame(0, 1, 1, 100)
    del x
    assert (y.to_numpy() == 4).all()


def test_eight_threads_at_once(image: bytes) -> None:
    def held() -> tuple[int, int]:
        gc.collect()
        native.synchronize()
        stats = _core.pool_stats()
        return stats.used, stats.active_blocks

    gp.zeros(1)
    before = held()
    shared = native.Stream()
    errors: list[BaseException] = []
    stop = time.monotonic() + SECONDS

    def work(number: int) -> None:
        pick = random.Random(number)
        try:
            while not errors:
                one_round(pick, native.Stream(), shared, image)
                if time.monotonic() > stop:
                    break
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    wait_until(lambda: held() == before)  # a thread that has been joined may yet be on its way out


def test_a_stream_dropped_with_a_fault_leaves_the_pool_in_order(image: bytes) -> None:
    stream = native.Stream()
    native.set_current_stream(stream)
    x, kept = gp.empty(100_000), gp.ones(5)
    native.set_current_stream(None)
    native.Kernel(native.Module(image).function("fault"), "fault", [PARAMS[0]]).bind(ONE, ONE, stream=stream)(x)
    del stream, x
    gc.collect()
    with pytest.raises(DriverError, match="illegal memory access"):
        native.synchronize()
    _core.pool_trim(0)
    assert (gp.ones(100_000) + 1).to_numpy().sum() == 200_000
    del kept
    _core.pool_trim(0)
    native.synchronize()


def test_a_host_launch_takes_any_number_of_arrays() -> None:
    arrays = [gp.ones(1) for _ in range(500)]
    native.host_launch("many", lambda: None, arrays)
    for array in arrays:
        _core.pool_evict(0, array.block)  # none is left pinned


def test_an_error_in_a_host_launch_unpins() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    array = gp.ones(1)
    with pytest.raises(ZeroDivisionError):
        native.host_launch("fails", fail, [array] * 40)
    _core.pool_evict(0, array.block)


TWO_DEVICES = """
import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.core.errors import DeviceMismatchError

x = gp.ones(1000)
native.set_device(1)
y = gp.ones(1000)
assert (x.device, y.device) == (0, 1)
native.set_device(0)
_core.pool_evict(1, y.block)  # the core works on device 1 on this thread
_core.pool_trim(1)
free = native.memory_info()[0]
more = gp.empty(1 << 22)
assert more.device == 0 and native.memory_info()[0] < free
assert (x + x).to_numpy().sum() == 2000
assert y.to_numpy().sum() == 1000 and native.current_device() == 0
for call in (lambda: native.copy(x, y), lambda: native.copy(y, x), lambda: native.fill(y, bytes(4))):
    try:
        call()
    except DeviceMismatchError as error:
        assert "device 1" in str(error)
    else:
        raise SystemExit("crossed devices")
try:
    native.set_device(2)
except ValueError as error:
    assert native.current_device() == 0 and "2" in str(error)
native.set_device(1)
assert (y + y).to_numpy().sum() == 2000
print("done")
"""


def test_the_core_and_the_launches_agree_on_the_device() -> None:
    environment = {**os.environ, "PYGPUKIT_BACKEND": "sim", "PYGPUKIT_SIM": "devices=2"}
    command = [sys.executable, "-c", TWO_DEVICES]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.strip() == "done", done.stdout + done.stderr
