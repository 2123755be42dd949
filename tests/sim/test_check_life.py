"""Checked mode among other launches: faults and afterwards, modules, threads, freed memory, modes and cache keys."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from check_run import run

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import DriverError, KernelCheckError
from pygpukit.jit import compile_source
from pygpukit.jit.launch.unit import Unit

GOOD = "__global__ void k(float *y) { y[threadIdx.x] += 1; }"
REVERSE = """__global__ void k(float *y) {
  __shared__ float s[64];
  s[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}"""
BAD = "__global__ void k(float *y) {\n  y[threadIdx.x + 1] = 1; }"


@pytest.fixture
def y() -> Any:
    return gp.zeros(64, dtype="float32")


def test_the_device_works_on_after_a_finding(y: Any) -> None:
    for check in (True, "memory", False):
        found = run(BAD, 1, 64, y)
        assert found is not None and (found.kind, found.thread, found.index) == ("out of bounds", (63, 0, 0), 64)
        before = y.to_numpy()
        assert run(GOOD, 1, 64, y, check=check) is None
        np.testing.assert_array_equal(y.to_numpy(), before + 1)


def test_a_finding_is_a_driver_error_with_fields(y: Any) -> None:
    kernel = gp.jit(BAD, name="In[7]", check=True)
    kernel[1, 64](y)
    with pytest.raises(
        DriverError, match=r"kernel k, block \(0,0,0\), thread \(63,0,0\): out of bounds: .*In\[7\]:2"
    ) as caught:
        native.synchronize()
    error = caught.value
    assert isinstance(error, KernelCheckError)
    assert (error.code, error.name) == (700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert error.findings[0].array == "y" and "y[64]" in error.findings[0].message


@pytest.mark.turns(3)
def test_thirty_modules(y: Any) -> None:
    kernels = [gp.jit(f"__global__ void k(float *y) {{ __shared__ float s[64]; s[threadIdx.x] = {i}; __syncthreads(); "
                      "y[threadIdx.x] += s[63 - threadIdx.x]; }", check=True) for i in range(30)]  # fmt: skip
    for kernel in kernels + kernels:
        kernel[1, 64](y)
    native.synchronize()
    assert set(y.to_numpy()) == {2.0 * sum(range(30))}


def test_static_shared_memory_is_found_while_the_next_image_is_loaded() -> None:
    """Of an image whose number is the last that a thread's table has room for, the GNU loader's list says that it has
    no thread-local memory on that thread once a younger image is loaded: kernels wrote at address 0."""
    wanted, kept = np.arange(64, dtype=np.float32)[::-1], []
    for _ in range(800):
        kept.append(Unit(REVERSE, check=True).kernel())
        launch = kept[-1].launcher((1,), (64,))
        y = gp.arange(64, dtype="float32")
        launch(y)
        kept.append(Unit(REVERSE, check=True).kernel())
        kept[-1].launcher((1,), (64,))  # loads the image
        np.testing.assert_array_equal(y.to_numpy(), wanted)


def test_threads_and_streams() -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            stream = gp.Stream()
            mine = gp.zeros(256, dtype="float32")
            native.synchronize()
            checked, plain = gp.jit(GOOD, check=True), gp.jit(GOOD, check=False)
            for _ in range(20):
                checked[1, 256, stream](mine)
                plain[1, 256, stream](mine)
            stream.synchronize()
            assert set(mine.to_numpy()) == {40.0}, number
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


POINTERS = (
    "__device__ float *kept; __global__ void keep(float *y) { kept = y; } __global__ void "
    "use(float *z) {\n z[0] = kept[3]; }"
)


@pytest.mark.parametrize("direct", [False, True], ids=["checked pointer", "address"])
def test_use_after_free(direct: bool) -> None:
    module = gp.jit(POINTERS, "keep", check=True)
    use = gp.jit("__global__ void use(float *z, unsigned long long *p) {\n z[0] = ((float *)p[0])[3]; }", check=True)
    table, z = gp.zeros(1, dtype="uint64"), gp.zeros(4, dtype="float32")
    save = gp.jit("__global__ void save(float *y, unsigned long long *p) { p[0] = (unsigned long long)y; }", check=True)
    lost = gp.zeros(100, dtype="float32")
    if direct:
        table = gp.from_numpy(np.array([lost.device_ptr], np.uint64))
    else:
        save[1, 1](lost, table)
    use[1, 1](z, table)
    native.synchronize()
    del lost
    other = gp.zeros(100, dtype="float32")  # would have the same place without a quarantine
    use[1, 1](z, table)
    with pytest.raises(KernelCheckError) as caught:
        native.synchronize()
    found = caught.value.findings[0]
    assert (found.kind, found.line, found.index) == ("use after free", 2, 3), found
    del other, module


def test_a_null_array_is_named(y: Any) -> None:
    found = run(
        "__global__ void k(float *y, const float *bias) {\n y[threadIdx.x] = bias[threadIdx.x]; }", 1, 64, y, None
    )
    assert found is not None and (found.kind, found.line, found.array, found.index) == ("out of bounds", 2, "bias", 0)


def test_views_are_counted_from_their_start(y: Any) -> None:
    found = run("__global__ void k(float *v) {\n v[threadIdx.x] = 1; }", 1, 64, y[16:32])
    assert found is not None and (found.array, found.index, found.thread) == ("v", 16, (16, 0, 0))


def test_the_same_array_twice(y: Any) -> None:
    source = "__global__ void k(const float *a, float *b) {\n b[threadIdx.x] = a[63 - threadIdx.x]; }"
    found = run(source, 1, 64, y, y)
    assert found is not None and (found.kind, found.line) == ("race", 2)


def test_neighbouring_arrays_are_told_apart() -> None:
    arrays = [gp.zeros(64, dtype="float32") for _ in range(8)]  # 256 bytes: without any gap in the pool
    for array in arrays:
        found = run("__global__ void k(float *a) {\n a[threadIdx.x] = 1; }", 1, 65, array)
        assert found is not None and (found.kind, found.index) == ("out of bounds", 64)
    assert not any(array.to_numpy()[0] for array in arrays[1:] if array is None)


def test_memory_mode_looks_for_no_races(y: Any) -> None:
    source = "__global__ void k(float *y) {\n y[threadIdx.x / 2] = threadIdx.x; }"
    assert run(source, 1, 64, y, check="memory") is None
    assert run(source, 1, 64, y, check=True) is not None
    assert run(BAD, 1, 64, y, check="memory") is not None


def test_keys_differ_by_mode() -> None:
    keys = {compile_source(GOOD, check=check).key for check in (False, True, "memory")}
    assert len(keys) == 3


def test_the_environment_turns_it_on(y: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYGPUKIT_CHECK", "1")
    kernel = gp.jit(BAD)
    kernel[1, 64](y)
    with pytest.raises(KernelCheckError):
        native.synchronize()
    monkeypatch.setenv("PYGPUKIT_CHECK", "yes")
    with pytest.raises(ValueError, match="PYGPUKIT_CHECK is 'yes'"):
        gp.jit(GOOD)


def test_bad_modes_and_other_architectures_are_refused() -> None:
    with pytest.raises(ValueError, match="check is 'all'"):
        gp.jit(GOOD, check="all")
    with pytest.raises(ValueError, match=r"checked mode runs on the simulation.*sm_90.*PYGPUKIT_BACKEND=sim"):
        compile_source(GOOD, arch="sm_90", check=True)


ENDLESS = {
    "reading": "while (!x[1]) x[2] = x[3];",
    "volatile": "while (!((volatile float *)x)[0]);",
    "computing": "for (volatile int i = 0;; ++i);",
    "barriers": "for (;;) __syncthreads();",
    "atomics": "while (atomicAdd(x, 0) == 0);",
}


def test_endless_kernels_end_at_their_time_limit() -> None:
    code = f"""
import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import KernelCheckError
x = gp.zeros(64, dtype="float32")
for name, body in {ENDLESS!r}.items():
    kernel = gp.jit("__global__ void k(float *x) {{\\n" + body + "\\n}}", check=True)
    kernel[1, 1](x)
    try:
        native.synchronize()
        raise SystemExit(name + " ended")
    except KernelCheckError as error:
        found = error.findings[0]
        assert found.kind == "time limit" and found.line == 2 and "0.3 s" in found.message, found
"""
    environment = {**os.environ, "PYGPUKIT_SIM_TIMEOUT_S": "0.3", "PYGPUKIT_BACKEND": "sim"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_grid_barrier_orders_blocks() -> None:
    body = """#include <cooperative_groups.h>
__global__ void k(float *y, float *z) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float s[32];
  s[threadIdx.x] = i;
  y[i] = i;
  {}
  z[i] = y[127 - i] + s[threadIdx.x];
}}"""
    y, z = gp.zeros(128, dtype="float32"), gp.zeros(128, dtype="float32")
    for barrier, kind in (("cooperative_groups::this_grid().sync();", None), ("__syncthreads();", "race")):
        kernel = gp.jit(body.format(barrier), name="cell", check=True)
        bound = kernel._kernel.bind((4, 1, 1), (32, 1, 1), flags=1)
        bound(y, z)
        if kind is None:
            native.synchronize()
            np.testing.assert_array_equal(z.to_numpy(), np.full(128, 127, np.float32))
            continue
        with pytest.raises(KernelCheckError) as caught:
            native.synchronize()
        assert (caught.value.findings[0].kind, caught.value.findings[0].line) == (kind, 6)
