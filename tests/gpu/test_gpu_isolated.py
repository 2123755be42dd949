"""Isolated kernels on the device: an illegal address in the worker leaves the notebook's own context sound."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell

import pygpukit as gp
from pygpukit.core.errors import DriverError
from pygpukit.jupyter import isolated

pytestmark = pytest.mark.gpu

CELL = """%%cuda --isolated
__global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
__global__ void wild(float* x, long long offset) { x[offset] = 1; }
__global__ void say(int n) { printf("n is %d\\n", n); }
"""
FAULT_HERE = """
import numpy as np, pygpukit as gp
from pygpukit.core import faults
good = gp.jit("__global__ void good(float* x) { x[0] = 1; }")
wild = gp.jit("__global__ void wild(float* x, long long offset) { x[offset] = 1; }")
x = gp.zeros(10)
good[1, 1](x); gp.synchronize()
wild[3, 2](x, 1 << 45)
for _ in range(2):
    try:
        gp.synchronize()
    except gp.DriverError as error:
        print(type(error).__name__, error)
    try:
        good[1, 1](x)
    except gp.DriverError as error:
        print(type(error).__name__, error)
"""


@pytest.fixture
def shell() -> Iterator[Any]:
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "pygpukit")
    made.user_ns["x"] = gp.from_numpy(np.arange(1000, dtype=np.float32))
    yield made
    isolated.reset()  # memory that a worker shares stays on the device: other tests look at what is left of it
    made.run_line_magic("unload_ext", "pygpukit")
    made.reset(new_session=False)
    InteractiveShell.clear_instance()
    gc.collect()
    isolated._worker.kill()


def run(shell: Any, cell: str) -> BaseException | None:
    error: BaseException | None = shell.run_cell(cell, store_history=True).error_in_exec
    return error


def test_a_fault_costs_the_worker_and_not_the_notebook(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    x = shell.user_ns["x"]
    assert run(shell, CELL) is None
    begin = time.perf_counter()
    assert run(shell, "scale(x, 2.0, 1000)") is None
    first_s = time.perf_counter() - begin
    for _ in range(2):
        error = run(shell, "wild[1, 1](x, 1 << 45)")
        assert isinstance(error, DriverError) and error.code in (700, 717, 719), error
        assert "wild[(1, 1, 1), (1, 1, 1)] at " in str(error) and " line 1 " in str(error)
        np.testing.assert_array_equal(gp.add(x, x).to_numpy(), 2 * x.to_numpy())  # this process's context is sound
        begin = time.perf_counter()
        assert run(shell, "scale(x, 1.0, 1000)") is None
        again_s = time.perf_counter() - begin
    np.testing.assert_array_equal(x.to_numpy(), 2 * np.arange(1000, dtype=np.float32))
    begin = time.perf_counter()
    assert run(shell, "for _ in range(100): scale(x, 1.0, 1000)") is None
    launch_us = (time.perf_counter() - begin) * 1e4
    with capsys.disabled():
        print(
            f"\nisolated: first launch {first_s:.2f} s, launch after a fault {again_s:.2f} s, then {launch_us:.0f} us"
        )


def test_a_measurement_in_the_worker_is_the_gpus(shell: Any) -> None:
    x = shell.user_ns["x"] = gp.ones(1 << 24)
    launches = gp._core.counters()["launches"]
    cell = CELL.replace("--isolated", "--isolated --kernel scale -i factor=2,n=x.size -o x --bytes 8*n --bench")
    measured = shell.run_cell(cell, store_history=True).result.bench
    assert measured.backend == "cuda" and measured.cold_l2 and 0 < measured.percent_of_limit < 200
    assert gp._core.counters()["launches"] == launches
    assert float(x.to_numpy().max()) == 2


def test_what_kernels_print_arrives_in_the_cell(shell: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(shell, CELL) is None
    capfd.readouterr()
    assert run(shell, "say[1, 1](42)\nprint('between')\nsay[1, 1](43)") is None
    assert capfd.readouterr().out == "n is 42\nbetween\nn is 43\n"


def test_a_fault_in_this_process_is_named_and_every_later_call_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", FAULT_HERE], capture_output=True, text=True, timeout=100, check=False)
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done.stderr + done.stdout
    assert all(line.startswith("ContextLostError") and "wild (3 blocks of 2 threads)" in line for line in lines), lines
    assert "The kernel that faulted is wild" in lines[0]
    assert all("the CUDA context was lost before" in line for line in lines[1:])
