"""The layer under the package lets go of what it holds, in every thread, and not before."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from typing import Any

import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.jit.compile.compiler import compile_source

pytestmark = pytest.mark.usefixtures("backend_name")

ONE = (1, 1, 1)
INT32 = 3


# ---- references ----

LEAKS = """
import gc, resource, sys, threading
import numpy as np
import pygpukit as gp
from pygpukit import _core
from pygpukit._core import native
from pygpukit.jit.compile.compiler import compile_source

PARAMS = [("x", "pointer", 11, 8), ("factor", "scalar", 11, 4), ("n", "scalar", 3, 4)]
image = compile_source('extern "C" __global__ void k(float *x, float f, int n) {}', name="k").image
function = native.Module(image).function("k")
kernel = native.Kernel(function, "k", PARAMS)
bound = kernel.bind((1, 1, 1), (1, 1, 1))
x = gp.ones(32)
host = np.zeros(32, np.float32)
event = native.Event()

def refused(call):
    def run():
        try:
            call()
        except Exception:
            return
        raise SystemExit("was not refused")
    return run

def in_a_thread():
    thread = threading.Thread(target=lambda: native.set_current_stream(native.Stream()))
    thread.start()
    thread.join()

CASES = [
    (100_000, lambda: native.empty((3, 4))),
    (100_000, lambda: native.view(x, (4,), (4,), 0)),
    (100_000, lambda: bound(x, 1.0, 32)),
    (20_000, lambda: bound(x, n=32, factor=1)),
    (20_000, refused(lambda: bound(x, "a", 1))),
    (20_000, refused(lambda: bound(x, 1, 10**30))),
    (20_000, refused(lambda: bound(x, 1, zz=3))),
    (20_000, refused(lambda: native.view(x, (99,), (4,), 0))),
    (20_000, refused(lambda: native.empty((3,), "none"))),
    (20_000, refused(lambda: native.Kernel(function, "k", [*PARAMS, ("x", "pointer", 99, 0)]))),
    (20_000, refused(lambda: kernel.bind((1, 1, 1), (1, 1, 1), stream=3))),
    (20_000, lambda: native.Kernel(function, "k", PARAMS)),
    (20_000, lambda: kernel.bind((1, 1, 1), (1, 1, 1))),
    (5_000, lambda: native.copy_from_host(x, host)),
    (5_000, lambda: native.copy_to_host(host, x)),
    (5_000, refused(lambda: native.copy_to_host(host[1:], x))),
    (5_000, lambda: native.fill(x, bytes(4))),
    (1_000, lambda: native.set_current_stream(native.Stream())),
    (5_000, lambda: native.Event().record()),
    (300, in_a_thread),
    (20_000, lambda: native.wrap(x.device_ptr, 128, (32,), "float32", x)),
    (300, refused(lambda: native.empty((1 << 50,)))),
    (50, lambda: native.Module(image).function("k")),
    (20_000, lambda: (x.shape, x.strides, x.dtype, x.device_ptr, x.last_use_ns, x.name)),
]
WATCHED = [x, kernel, bound, function, event, native.ArrayBase, gp.GPUArray, PARAMS, host]

def state():
    native.synchronize()
    gc.collect()
    stats = _core.pool_stats()
    counts = [sys.getrefcount(one) for one in WATCHED]
    return counts, stats.used, stats.active_blocks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

for _ in range(70_000):
    _core.ring_push(99)  # touches every page of the ring
state()
def repeat(count, call):
    for i in range(count):
        call()
        if i % 500 == 0:
            native.synchronize()  # what waits for a slow device takes memory, too

for place, (count, call) in enumerate(CASES):
    repeat(count // 10, call)
    before = state()
    repeat(count, call)
    after = state()
    assert after[:3] == before[:3], (place, before, after)
    grown = after[3] - before[3]
    assert grown < 1500, f"case {place} grew by {grown} KiB"
print("done")
"""


def test_nothing_is_leaked() -> None:
    done = subprocess.run([sys.executable, "-c", LEAKS], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "done", done.stdout + done.stderr


def test_a_kernel_outlives_its_module_and_function_objects() -> None:
    source = 'extern "C" __global__ void slow(int *x) { for (int i = 0; i < 200000; ++i) *(volatile int *)x += 1; }'
    x = gp.zeros(1, "int32")
    module = native.Module(compile_source(source, name="slow").image)
    bound = native.Kernel(module.function("slow"), "slow", [("x", "pointer", INT32, 8)]).bind(ONE, ONE)
    del module
    gc.collect()
    bound(x)
    bound(x)
    del bound  # the module goes while its kernel runs
    gc.collect()
    assert x.to_numpy()[0] == 400_000


# ---- threads ----


def test_a_threads_current_stream_goes_with_the_thread() -> None:
    alive: list[weakref.ref[Any]] = []

    def work() -> None:
        stream = native.Stream()
        alive.append(weakref.ref(stream))
        native.set_current_stream(stream)
        gp.ones(100)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    assert alive[0]() is None


def test_the_current_stream_is_kept_while_it_is_current() -> None:
    native.set_current_stream(native.Stream())
    try:
        gc.collect()
        current = native.current_stream()
        native.set_current_stream(current)  # the same one again
        assert native.current_stream() is current and current.id != 0
        assert gp.ones(3).stream_id == current.id
    finally:
        native.set_current_stream(None)
    assert native.current_stream() is native.default_stream()


DAEMONS = """
import threading, time
import pygpukit as gp
from pygpukit._core import native

def work():
    native.set_current_stream(native.Stream())
    while True:
        gp.ones(1 << 16)
        native.synchronize()

gp.ones(1)
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
native.set_current_stream(native.Stream())
kept = gp.ones(5), gp.Stream(), native.Event()
time.sleep(0.3)
print("end")
"""


def test_the_interpreter_ends_while_daemon_threads_wait() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", DAEMONS], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, "end"), done.stderr
