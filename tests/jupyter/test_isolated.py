"""%%cuda --isolated: the same call forms in a worker process, whose faults and death the notebook survives."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from cell_runner import error_of as failure
from cell_runner import run
from IPython.core.error import UsageError

import pygpukit as gp
from pygpukit.core.errors import DriverError, GPUError, KernelArgumentError, KernelCheckError
from pygpukit.jit.launch.unit import Unit
from pygpukit.jupyter import isolated
from pygpukit.profiling.bench import BenchResult
from pygpukit.worker import WorkerDiedError
from pygpukit.worker.remote import KernelWorker

SCALE = """%%cuda --isolated
extern "C" __global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""
FAULTS = """%%cuda --isolated
__device__ int runs;
__global__ void count(int* out) { out[0] = ++runs; }
__global__ void wild(float* x) {
    x[threadIdx.x + 1000000000LL] = 1;
}
__global__ void spin(volatile int* x) { x[1] = 1; while (x[0] == 0); }
__global__ void say(int n) { printf("n is %d\\n", n); }
__global__ void say_and_fault(float* x) { printf("before\\n"); x[threadIdx.x + 1000000000LL] = 1; }
"""


@pytest.fixture
def cells(shell: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The shell with gp and two arrays; its worker ends with the test."""
    shell.user_ns["gp"] = gp
    shell.user_ns["x"] = gp.from_numpy(np.arange(1000, dtype=np.float32))
    shell.user_ns["out"] = gp.zeros(2, dtype="int32")
    monkeypatch.setattr(isolated, "_worker", KernelWorker("isolated kernels"))
    yield shell
    isolated._worker.kill()


def worker_pid() -> int:
    worker = isolated._worker._worker
    assert worker is not None and worker.pid is not None
    return worker.pid


@contextmanager
def once(begun: Callable[[], bool], act: Callable[[], object]) -> Iterator[None]:
    """Act on another thread when something has begun, and not after the block: a kernel that is slow to begin would
    never be met by a blow that falls after a time, and a late SIGINT would end the tests."""
    left = threading.Event()

    def watch() -> None:
        while not left.wait(0.01):
            if begun():
                act()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def spins(cells: Any) -> bool:
    """Whether the kernel runs that spins on `out`; the notebook sees what the worker writes."""
    return bool(cells.user_ns["out"].to_numpy()[1])


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_every_call_form_runs_in_the_worker_on_the_notebooks_arrays(cells: Any) -> None:
    run(cells, SCALE)
    address = cells.user_ns["x"].device_ptr
    launches = gp._core.native.device_counters()["launches"]
    expected = np.arange(1000, dtype=np.float32)
    for call, factor, count in (
        ("scale(x, 2.0, 1000)", 2, 1000),
        ("scale(x, factor=0.5, n=x.size)", 0.5, 1000),
        ("scale[4, 256](x, 3.0, 700)", 3, 700),
        ("scale[(2, 1), (128, 1, 1), 0](x, factor=4.0, n=256)", 4, 256),
        ("scale.launcher(1, 64, shared_bytes=64)(x, __import__('numpy').float32(2), 64)", 2, 64),
    ):
        run(cells, call)
        expected[:count] *= factor
    np.testing.assert_array_equal(cells.user_ns["x"].to_numpy(), expected)
    assert cells.user_ns["x"].device_ptr == address
    assert gp._core.native.device_counters()["launches"] == launches, "nothing was launched in this process"
    assert worker_pid() != os.getpid()


def test_a_launching_cell_runs_there_too(cells: Any) -> None:
    run(cells, SCALE.replace("--isolated", "--isolated -i x,2.0,1000 --block 128"))
    assert float(cells.user_ns["x"].to_numpy()[10]) == 20


def test_measurements_are_taken_in_the_worker(cells: Any) -> None:
    launches = gp._core.native.device_counters()["launches"]
    cell = SCALE.replace(
        "--isolated", "--isolated -i factor=2.0,n=1000 -o x --verify 2*x --bytes 8*n --flops n --bench"
    )
    measured = run(cells, cell).bench
    assert isinstance(measured, BenchResult) and measured.backend == "sim" and measured.median_us > 0
    assert (measured.bytes, measured.flops, measured.limits) == (8000, 1000, None)
    np.testing.assert_array_equal(cells.user_ns["x"].to_numpy(), 2 * np.arange(1000))  # as one launch leaves it
    swept = run(cells, cell.replace("--bench", "--sweep block=64,2048")).sweep
    assert swept[0].bench.samples and swept[0].bench.bytes == 8000 and "1024" in swept[1].error
    assert gp._core.native.device_counters()["launches"] == launches, "nothing was launched in this process"
    assert isinstance(failure(cells, cell.replace("8*n", "-8*n")), ValueError)


def test_a_measurement_that_faults_or_is_interrupted_costs_the_worker_only(cells: Any) -> None:
    body = "__global__ void step(volatile float* x, int wild) {\n    x[0] += 1;\n"
    body += "    if (x[0] > 5 && wild) x[1ll << 40] = 1;\n    while (x[0] > 5) { }\n}"
    for wild in (1, 0):
        x = cells.user_ns["x"] = gp.zeros(10)
        with once(lambda x=x, wild=wild: not wild and x.to_numpy()[0] > 5, interrupt):  # the measurement has no end now
            error = failure(cells, f"%%cuda --isolated --grid 1 --block 1 --bench -i wild={wild} -o x\n{body}")
        if wild:
            assert isinstance(error, DriverError) and "cell:4" in str(error) and "step[" in str(error)
        else:
            assert isinstance(error, KeyboardInterrupt)
        assert cells.user_ns["x"].to_numpy()[0] == 1  # as the launch before left it
    run(cells, SCALE.replace("--isolated", "--isolated -i x,2.0,10"))
    assert cells.user_ns["x"].to_numpy()[0] == 2


def test_the_whole_notebook_may_be_isolated(cells: Any) -> None:
    run(cells, "%config CudaMagics.isolated = True")
    run(cells, SCALE.replace(" --isolated", ""))
    assert isinstance(cells.user_ns["scale"], isolated.IsolatedKernel)
    run(cells, "scale(x, 2.0, 1000)")
    run(cells, "%config CudaMagics.isolated = False")
    run(cells, SCALE.replace(" --isolated", ""))
    assert not isinstance(cells.user_ns["scale"], isolated.IsolatedKernel)


def test_bad_arguments_are_refused_as_ever(cells: Any) -> None:
    run(cells, SCALE)
    for call, parameter in (("scale(x, 2.0)", "n"), ("scale(x, 'two', 5)", ""), ("scale[0, 1](x, 2.0, 5)", "grid")):
        error = failure(cells, call)
        assert isinstance(error, KernelArgumentError) and error.parameter == parameter
    error = failure(cells, "scale[1, 4096](x, 2.0, 5)")
    assert isinstance(error, KernelArgumentError) and error.parameter == "block"
    assert isinstance(failure(cells, "scale.globals"), GPUError)


def test_a_fault_names_kernel_launch_and_line_and_the_next_launch_works(cells: Any) -> None:
    run(cells, FAULTS + SCALE.partition("\n")[2])
    error = failure(cells, "y = 1\nwild[2, 32](x)")
    assert isinstance(error, DriverError) and error.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert f"wild[(2, 1, 1), (32, 1, 1)] at In[{cells.execution_count - 1}] line 2" in str(error).replace("Cell ", "")
    assert "cell:5" in str(error) and "The notebook is unharmed" in str(error)
    run(cells, "scale(x, 2.0, 1000)")
    assert float(cells.user_ns["x"].to_numpy()[10]) == 20
    assert float(gp.add(cells.user_ns["x"], cells.user_ns["x"]).to_numpy()[10]) == 40


def test_a_worker_that_is_killed_costs_its_variables_only(cells: Any) -> None:
    run(cells, FAULTS)
    for expected in (1, 2):
        run(cells, "count[1, 1](out)")
        assert int(cells.user_ns["out"].to_numpy()[0]) == expected
    run(cells, FAULTS)
    run(cells, "count[1, 1](out)")
    assert int(cells.user_ns["out"].to_numpy()[0]) == 1, "a cell that runs again starts afresh"
    first = worker_pid()
    cells.user_ns["out"] = gp.zeros(2, dtype="int32")
    with once(lambda: spins(cells), lambda: os.kill(first, signal.SIGKILL)):
        error = failure(cells, "spin[1, 1](out)")
    assert isinstance(error, WorkerDiedError) and error.exit_code == -signal.SIGKILL
    assert "spin[(1, 1, 1), (1, 1, 1)]" in str(error) and "signal 9" in str(error)
    run(cells, "count[1, 1](out)")
    assert int(cells.user_ns["out"].to_numpy()[0]) == 1
    assert worker_pid() != first


def test_an_interrupt_ends_an_endless_kernel(cells: Any) -> None:
    run(cells, FAULTS)
    run(cells, "count[1, 1](out)")
    cells.user_ns["out"] = gp.zeros(2, dtype="int32")
    with once(lambda: spins(cells), interrupt):
        assert isinstance(failure(cells, "spin[1, 1](out)"), KeyboardInterrupt)
    run(cells, "count[1, 1](out)")
    assert int(cells.user_ns["out"].to_numpy()[0]) == 1


def test_what_kernels_print_appears_in_the_cell(cells: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(cells, FAULTS)
    capsys.readouterr()
    run(cells, "say[1, 1](42)\nprint('between')\nsay[1, 1](43)")
    assert capsys.readouterr().out == "n is 42\nbetween\nn is 43\n"
    failure(cells, "say_and_fault[1, 1](x)")
    assert capsys.readouterr().out.startswith("before\n")


def test_what_checked_mode_finds_arrives_with_its_fields(cells: Any) -> None:
    unit = Unit("\n__global__ void late(float* x) {\n    x[threadIdx.x + 999] = 1;\n}", check=True)
    cells.user_ns.update(isolated.isolate(unit, {"late": unit.kernel("late")}))
    error = failure(cells, "late[2, 32](x)")
    assert isinstance(error, KernelCheckError)
    assert "In[" in str(error) and "The notebook is unharmed" in str(error)
    (finding, *_) = error.findings
    assert (finding.kind, finding.kernel, finding.line, finding.array) == ("out of bounds", "late", 3, "x")
    assert (finding.thread, finding.index) == ((1, 0, 0), 1000)


def test_kernels_that_are_gone_are_forgotten_there(cells: Any) -> None:
    for number in range(4):
        unit = Unit(f"__global__ void k(int* out) {{ out[0] = {number}; }}")
        kernels = isolated.isolate(unit, {"k": unit.kernel("k")})
        kernels["k"][1, 1](cells.user_ns["out"])
        assert int(cells.user_ns["out"].to_numpy()[0]) == number
        assert len(isolated._worker._loaded) <= 2  # this one, and the one before, which is dropped with the next
        del unit, kernels
        gc.collect()


def test_reset_clears_the_device_and_brings_a_fresh_worker(cells: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(cells, "%cuda_reset")
    assert capsys.readouterr().out == "the simulated device is clear\n"
    run(cells, FAULTS)
    run(cells, "count[1, 1](out)\ncount[1, 1](out)")
    first = worker_pid()
    run(cells, "%cuda_reset")
    assert "the worker of isolated kernels is fresh" in capsys.readouterr().out
    assert worker_pid() != first
    run(cells, "count[1, 1](out)")
    assert int(cells.user_ns["out"].to_numpy()[0]) == 1
    assert isinstance(failure(cells, "%cuda_reset now"), UsageError)


def test_reset_ends_what_the_notebooks_own_device_runs(cells: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(cells, FAULTS.replace(" --isolated", ""))
    run(cells, "spin[1, 1](out)")
    run(cells, "%cuda_reset")
    assert "1 kernels were ended" in capsys.readouterr().out
    run(cells, "count[1, 1](out)\ngp.synchronize()")
    assert int(cells.user_ns["out"].to_numpy()[0]) == 1
