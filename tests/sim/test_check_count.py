"""Bytes and floating-point operations of launches, against what the source says: here and in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from interrupts import interrupt

import pygpukit as gp
from bench.kernels import MATMUL
from pygpukit.core.errors import CompileError, GPUError, KernelArgumentError, KernelCheckError
from pygpukit.jit.compile.sim_flops import COUNTS_FLOPS
from pygpukit.jit.compile.simulator import CompilerNotFound
from pygpukit.worker import arrays as worker_arrays
from pygpukit.worker import counting
from pygpukit.worker.counting import Counts, count_in_worker

pytestmark = pytest.mark.skipif(not COUNTS_FLOPS, reason="operations are counted on x86-64 only")

Count = Callable[..., Counts]


@pytest.fixture(params=["here", "worker"])
def count(request: pytest.FixtureRequest) -> Count:
    """Counting in this process, as on the simulation, and in a worker process, as on a GPU."""
    return counting.count if request.param == "here" else count_in_worker


@pytest.fixture(scope="module", autouse=True)
def _worker_ends() -> Iterator[None]:
    yield
    counting._worker.kill()


def test_elements(count: Count) -> None:
    x, y = gp.ones(1000, dtype="float32"), gp.zeros(1000, dtype="float32")
    kernel = gp.jit("__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + "
         "threadIdx.x; "
                    "if (i < n) y[i] = 2.5f * x[i] + y[i]; }")  # fmt: skip
    assert count(kernel, (4, 256), (x, y, 1000)) == Counts(8000, 4000, 0, 2000)
    assert not y.to_numpy().any()  # as before


def test_tiled_matmul(count: Count) -> None:
    n = 64
    a, b, c = (gp.ones((n, n), dtype="float32") for _ in range(3))
    found = count(gp.jit(MATMUL), ((n // 16, n // 16), (16, 16)), (a, b, c, n))
    loads = 2 * n**3 // 16 * 4
    assert found == Counts(loads, n * n * 4, loads + 2 * n**3 * 4, 2 * n**3)


def test_doubles_divisions_and_vectors(count: Count) -> None:
    x, y = gp.from_numpy(np.arange(1, 65, dtype=np.float64)), gp.zeros(64, dtype="float64")
    kernel = gp.jit(
        "__global__ void k(const double *x, double *y) { int i = threadIdx.x; y[i] = sqrt(x[i]) / (x[i] - 0.5); }"
    )
    assert count(kernel, (1, 64), (x, y)) == Counts(512, 512, 0, 192)
    z, w = gp.ones(64, dtype="float32"), gp.zeros(64, dtype="float32")
    copy = gp.jit("__global__ void k(const float4 *x, float4 *y) { y[threadIdx.x] = x[threadIdx.x]; }")
    assert count(copy, (1, 16), (z, w)) == Counts(256, 256, 0, 0)


def test_atomics_load_and_store(count: Count) -> None:
    y = gp.zeros(4, dtype="int32")
    kernel = gp.jit("__global__ void k(int *y) { atomicAdd(&y[threadIdx.x % 4], 1); }")
    assert count(kernel, (2, 32), (y,)) == Counts(256, 256, 0, 0)


def test_a_kernel_for_another_architecture_is_counted_by_its_source(count: Count) -> None:
    options = ["-arch", "sm_90", "--use_fast_math", "-DSTEP=2"]
    kernel = gp.jit("__global__ void k(float *y) { y[STEP] = y[0] + 1; }", options=options[2:])
    kernel._unit.options = (*options,)
    assert count(kernel, (1, 1), (gp.zeros(3),)) == Counts(4, 4, 0, 1)


def test_values_and_variables_decide_what_is_counted(count: Count) -> None:
    kernel = gp.jit(
        "__constant__ int rows[2];\n__device__ int unused;\n__device__ const int one = 1;\n"
        "struct Pair { int a, b; };\n"
        "__global__ void k(float *y, const int *steps, Pair pair, double scale, bool twice) {\n"
        "  for (int i = 0; i < rows[1] + steps[0] + pair.b * one; ++i) y[i] += scale;\n"
        "}"
    )
    kernel.globals["rows"].write([100, 3])
    y, steps = gp.zeros(20), gp.from_numpy(np.array([4], np.int32))
    pair = np.array([50, 5], np.int32).tobytes()
    found = count(kernel, (1, 1), (y, steps, pair, np.float64(0.5), True))
    assert (found.global_store_bytes, found.flops) == (12 * 4, 12)
    assert not y.to_numpy().any()
    kernel.globals["rows"].write([100, 0])
    assert count(kernel, (1, 1), (y, steps, pair, 0.5, False)).flops == 9


def test_arrays_that_overlap_do_so_in_the_count(count: Count) -> None:
    kernel = gp.jit(
        "__global__ void k(float *a, float *b, float *none, int n) { a[0] = 7; for (int i = 0; i < b[0]; ++i) b[9] = i;"
        " if (none && n) none[0] = 1; }"
    )
    whole = gp.zeros(100)
    assert count(kernel, (1, 1), (whole[3:], whole[3:20], None, 0)).global_store_bytes == 4 + 7 * 4
    assert count(kernel, (1, 1), (whole[3:], whole[4:20], gp.zeros(0), 0)).global_store_bytes == 4
    assert not whole.to_numpy().any()


def test_shared_memory_of_the_launch(count: Count) -> None:
    kernel = gp.jit("__global__ void k(int *y) { extern __shared__ volatile int s[]; s[0] = 1; y[0] = s[0]; }")
    assert count(kernel, (1, 1, 4), (gp.zeros(1, dtype="int32"),)).shared_bytes == 8


def test_errors_are_those_of_a_launch(count: Count, capfd: pytest.CaptureFixture[str]) -> None:
    kernel = gp.jit(
        '__global__ void k(float *y, int n) { printf("n"); if (n < 0) y[0] = n / (int)(n == 0); y[n] = 1; }'
    )
    y = gp.zeros(10)
    with pytest.raises(KernelCheckError, match="divided by zero") as caught:
        count(kernel, (1, 1), (y, -1))
    assert (caught.value.findings[0].kernel, caught.value.findings[0].line) == ("k", 1)
    for bad in ((y,), (y, "one"), (y.to_numpy(), 1)):
        with pytest.raises(KernelArgumentError):
            count(kernel, (1, 1), bad)
    with pytest.raises(KernelArgumentError):
        count(kernel, (1, 5000), (y, 1))
    assert count(kernel, (1, 1), (y, 1)).global_store_bytes == 4


def test_what_is_not_for_the_simulation_says_so(count: Count, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = gp.jit("__global__ void k(float *y) { y[0] = 2; }")
    kernel._unit.source = '__global__ void k(float *y) { asm("nop;"); }'
    with pytest.raises(CompileError, match="inline PTX: the instruction nop"):
        count(kernel, (1, 1), (gp.zeros(1),))
    kernel._unit.source = "__global__ void k(float *y) { y[0] = 3; }"
    monkeypatch.setenv("PYGPUKIT_SIM_CXX", "no-such-compiler")
    with pytest.raises(CompilerNotFound, match="no-such-compiler"):
        count(kernel, (1, 1), (gp.zeros(1),))


def test_copies_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = gp.jit("__global__ void k(float *y) { y[0] = 2; }")
    monkeypatch.setattr(worker_arrays, "available_bytes", lambda: 3 << 20)
    assert count_in_worker(kernel, (1, 1), (gp.zeros(700_000),)).global_store_bytes == 4
    with pytest.raises(GPUError, match="3 MiB are free"):
        count_in_worker(kernel, (1, 1), (gp.zeros(1 << 20),))


def test_an_interrupt_ends_the_worker_and_the_next_count_works() -> None:
    kernel = gp.jit("__global__ void k(volatile int *y) { while (y[0]) { } y[1] = 1; }")
    y: Any = gp.ones(2, dtype="int32")
    count_in_worker(kernel, (1, 1), (gp.zeros(2, dtype="int32"),))
    worker = counting._worker._worker
    assert worker is not None
    first = worker.pid
    assert interrupt(lambda: count_in_worker(kernel, (1, 1), (y,)), after_s=0.3) < 30  # its time limit is 60 s
    assert count_in_worker(kernel, (1, 1), (gp.zeros(2, dtype="int32"),)).global_store_bytes == 4
    assert worker.pid != first
