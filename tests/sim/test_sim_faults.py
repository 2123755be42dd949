"""Kernels of the simulated device that fail, never end, or are interrupted; and what is left of the device then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from interrupts import interrupt
from sim_kernels import ADD
from sim_table import ASSERT, FAILED, GRANULE, HERE, ILLEGAL_ADDRESS, Array, Module, Table, start

import pygpukit as gp
from pygpukit._core import native


@pytest.fixture(scope="module")
def table() -> Table:
    return Table()


@pytest.fixture
def ints(table: Table) -> Array:
    return table.array(np.zeros(1024, np.int32))


FAULTS = [
    ("  o[threadIdx.x + 1000000000LL] = 1;", ILLEGAL_ADDRESS, "illegal memory access at cell:2", "thread (0,0,0)"),
    ("  if (threadIdx.x == 5) *(int *)0 = 1;", ILLEGAL_ADDRESS, "at cell:2: address 0x0", "thread (5,0,0)"),
    ("  int d = 3 - threadIdx.x;\n  if (blockIdx.x == 1) o[0] = 5 / d;", FAILED, "division by zero at cell:3",
     "block (1,0,0), thread (3,0,0)"),
    ("  assert(threadIdx.x < 7 && o);", ASSERT, "Assertion `threadIdx.x < 7 && o` failed", "thread (7,0,0): cell:2"),
    ("\n  if (threadIdx.x == 9) __trap();", FAILED, "__trap() at cell:3", "thread (9,0,0)"),
    ("  __shfl_sync(0xffffu, 1, 1);", FAILED, "mask 0x0000ffff, which does not name it, at cell:2", "lane 16"),
    ("  extern __shared__ int s[];\n  s[threadIdx.x + 33] = 1;", ILLEGAL_ADDRESS, "at cell:3", "block (0,0,0)"),
    ("  __syncthreads();\n  if (threadIdx.x == 4) o[1LL << 40] = 1;", ILLEGAL_ADDRESS, "at cell:3", "thread (4,0,0)"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "what", "who"), FAULTS, ids=[what for _, _, what, _ in FAULTS])
def test_faults_name_thread_and_line(table: Table, ints: Array, body: str, status: int, what: str, who: str) -> None:
    module = Module(table, "__global__ void k(int *o) {\n" + body + "\n}")
    got, text = module.fault("k", 2, 64, ints)
    assert got == status and what in text and who in text and text.startswith("kernel k, block ("), text
    Module(table, "__global__ void k(int *o) { o[threadIdx.x] = 7; }").run("k", 1, 64, ints)  # the device goes on
    assert set(ints.read()[:64]) == {7}


def test_an_index_that_overflowed_reaches_no_page_of_the_host() -> None:
    reach_bytes = 8 << 31
    arrays = [gp.zeros(count) for count in (64, 1 << 20, 9 << 20)]
    starts = [(array.device_ptr, array.device_ptr + array.nbytes) for array in arrays]
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, access = line.split()[:2]
        if access.startswith("---") or "pygpukit-sim" in line:
            continue
        begin, end = (int(number, 16) for number in where.split("-"))
        for first, last in starts:
            assert end <= first - reach_bytes or begin >= last + reach_bytes, line


def test_deadlock_tells_who_waits_where(table: Table, ints: Array) -> None:
    source = """__global__ void k(int *o) {
  if (threadIdx.x == 63) return;
  if (threadIdx.x < 16)
    __shfl_down_sync(~0u, 1, 1);
  __syncthreads();
}"""
    status, text = Module(table, source).fault("k", 1, 64, ints)
    assert status == FAILED
    assert "16 waiting in __shfl_down_sync(mask 0xffffffff) at cell:4: 0-15" in text
    assert "47 waiting in __syncthreads() at cell:5: 16-62" in text and "1 exited: 63" in text


def test_stack_overflow(table: Table, ints: Array) -> None:
    source = """
__device__ int deep(int n, int *o) {
  volatile int local[6000];
  local[n % 6000] = n;
  return n ? deep(n - 1, o) + local[n % 6000] : 0;
}
__global__ void k(int *o) { o[0] = deep(1000000, o); }"""
    status, text = Module(table, source).fault("k", 1, 1, ints)
    assert status == FAILED and "stack overflow" in text and "256 KiB" in text


ENDLESS = {
    "reading": "while (!((volatile int *)o)[0]);",
    "computing": "for (volatile int x = 0;; ++x);",
    "barriers": "for (;;) __syncthreads();",
    "atomics": "if (threadIdx.x == 0) while (atomicAdd(o, 0) == 0); __syncthreads();",
    "printing": 'for (;;) printf("");',
    "nothing": "for (;;) ;",
    "waiting for a flag": "while (atomicExch(o, 0) == 0) __nanosleep(100);",
    "shuffling": "for (;;) __shfl_xor_sync(~0u, 1, 1);",
}


def test_endless_kernels_end_at_their_time_limit() -> None:
    text = start(
        f"""
t = Table()
o = t.array(np.zeros(16, np.int32))
for body in {list(ENDLESS.values())!r}:
    module = Module(t, "__global__ void k(int *o) {{\\n" + body + "\\n}}")
    begin = time.perf_counter()
    status, text = module.fault("k", 3, 64, o)
    assert status == TIMEOUT and "longer than 0.3 s" in text and "PYGPUKIT_SIM_TIMEOUT_S" in text, text
    assert time.perf_counter() - begin >= 0.3
    print(text)
""",
        PYGPUKIT_SIM_TIMEOUT_S="0.3",
    )
    lines = text.splitlines()
    assert len(lines) == len(ENDLESS)
    for kind, line in zip(ENDLESS, lines, strict=True):
        assert "kernel k, block (" in line and "), thread (" in line, line
        if kind != "printing":  # which is met in the device's own code
            assert "at cell:2" in line, line


@pytest.mark.parametrize("kind", ENDLESS)
def test_control_c_need_not_wait(table: Table, ints: Array, kind: str) -> None:
    module = Module(table, "__global__ void k(int *o) {\n" + ENDLESS[kind] + "\n}")
    assert module.launch("k", 2, 64, ints) == 0
    interrupt(table.wait)
    assert native.sim_cancel() >= 1
    status = table.stream_wait(0)
    assert status == FAILED and table.text(status).endswith("cancelled")
    assert native.sim_clear_fault() == FAILED
    table.ok("device_wait")


def test_the_process_ends_with_parked_and_with_busy_threads() -> None:
    for body in ("o[threadIdx.x] = 1;", "for (;;) __syncthreads();"):
        start(f"""
t = Table()
o = t.array(np.zeros(64, np.int32))
source = "__global__ void k(int *o) {{{{ {body} }}}}".replace("{{{{", "{{").replace("}}}}", "}}")
module = Module(t, source)
assert module.launch("k", 64, 64, o) == 0
{"t.wait()" if "for" not in body else "time.sleep(0.1)"}
""")  # fmt: skip


def test_queued_work_is_cancelled(table: Table, ints: Array) -> None:
    endless = Module(table, "__global__ void k(int *o) { for (int i = 0;; ++i) ((volatile int *)o)[1] = i; }")
    count = Module(table, "__global__ void k(int *o) { atomicAdd(o, 1); }")
    assert native.sim_cancel() == 0  # nothing to cancel
    for _ in range(20):
        assert endless.launch("k", 1, 1, ints) == 0
        assert count.launch("k", 1, 1, ints) == 0
    assert native.sim_cancel() == 1
    assert table.stream_wait(0) == FAILED
    assert native.sim_clear_fault() == FAILED
    assert ints.read()[0] == 0


def test_a_cancellation_reaches_what_waits_for_a_core() -> None:
    """Else it would begin when another launch has ended, before that has left its fault."""
    start(
        """
from pygpukit._core import native
t = Table()
o = t.array(np.zeros(2, np.int32))
endless = Module(t, "__global__ void k(int *o) { for (int i = 0;; ++i) ((volatile int *)o)[1] = i; }")
streams = [t.get("stream_create", 0) for _ in range(8)]
for _ in range(30):
    for stream in streams:
        assert endless.launch("k", 1, 1, o, stream=stream) == 0
    assert native.sim_cancel() >= 1
    assert native.sim_clear_fault() == FAILED
""",
        PYGPUKIT_SIM="workers=1",
    )


def test_a_modelled_copy_can_be_cancelled() -> None:
    start(
        """
from pygpukit._core import native
t = Table()
address, _ = t.memory(GRANULE)
t.ok("fill", address, 0, 1, GRANULE, 0)  # takes 2000 s
assert native.sim_cancel() == 1
assert t.stream_wait(0) == FAILED
""",
        PYGPUKIT_SIM="copy_gbps=0.000001",
    )


def test_other_faults_still_end_the_process() -> None:
    """The signal handlers pass on what no kernel caused, with and without a handler of Python's."""
    for prelude in ("", "import faulthandler; faulthandler.enable()\n"):
        code = prelude + """
from sim_table import *
t = Table()
Module(t, "__global__ void k() {}").run("k", 1, 1)
ctypes.string_at(0)
"""  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, "PYTHONPATH": str(HERE)},
        )  # fmt: skip
        assert done.returncode == -signal.SIGSEGV
        assert ("Fatal Python error" in done.stderr) == bool(prelude)


def test_guarded_memory_stops_a_kernel_at_the_end(table: Table) -> None:
    address, physical = table.memory(GRANULE)
    array = Array(table, address, physical, np.zeros(GRANULE // 4, np.float32))
    unbounded = ADD.replace("if (i < n) ", "")
    status, text = Module(table, unbounded).fault("add", GRANULE // 1024 + 1, 256, array, array, array, 0)
    assert status == ILLEGAL_ADDRESS and f"0x{address + GRANULE:x}" in text and "at cell:3" in text, text
    assert f"block ({GRANULE // 1024},0,0)" in text
