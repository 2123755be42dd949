"""What is read from a CUBIN without a device: registers and memory as ptxas tells them, variables, damaged files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pygpukit as gp  # noqa: F401  for the condition of a skip
from pygpukit.core.errors import GPUError
from pygpukit.jit import compile_source, jit
from pygpukit.jit.inspect.cubin import Resources, read_cubin
from pygpukit.jit.inspect.occupancy import occupancy_of
from pygpukit.jit.toolchain import nvrtc_candidates

pytestmark = pytest.mark.skipif(
    not any(Path(path).is_file() for path in nvrtc_candidates()), reason="NVRTC is not installed (extra cuda13)"
)

SOURCE = """
__constant__ float table[4] = {1, 2, 3, 4};
static __device__ double hidden[2][3];
namespace ns { __device__ int unused[7]; }
extern "C" __global__ void plain(float* x) { x[threadIdx.x] *= table[threadIdx.x & 3]; }
extern "C" __global__ void shared(float* x) {
    __shared__ float t[33];
    t[threadIdx.x] = x[0];
    __syncthreads();
    x[1] = t[32 - threadIdx.x];
}
extern "C" __global__ void dynamic(float* x) {
    extern __shared__ float t[];
    t[threadIdx.x] = x[0];
    __syncthreads();
    x[1] = t[32 - threadIdx.x];
}
extern "C" __global__ void local(float* x, int n) {
    volatile float a[64];
    for (int i = 0; i < 64; ++i) a[i] = x[i * n];
    x[n] = a[n] + a[n + 1];
}
"""
PTXAS = re.compile(r"entry function '(\w+)'.*?(\d+) bytes stack frame.*?Used (\d+) registers([^\n]*)", re.DOTALL)


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a"])
def test_resources_are_those_that_ptxas_tells(arch: str) -> None:
    image = compile_source(SOURCE, arch=arch, options=["--ptxas-options=-v"])
    told = {}
    for name, stack, registers, rest in PTXAS.findall(image.log):
        shared = re.search(r"(\d+) bytes smem", rest)
        told[name] = Resources(int(registers), int(shared[1]) if shared else 0, int(stack))
    assert set(told) == {"plain", "shared", "dynamic", "local"}
    assert told["local"].local_bytes == 256 and told["shared"].shared_bytes >= 132
    assert read_cubin(image.image).kernels == told


def test_variables_have_their_sizes_also_unused_and_static_ones() -> None:
    image = compile_source(SOURCE, arch="sm_90a")
    sizes = read_cubin(image.image).variables
    names = {"&table": 16, "&hidden": 48, "&ns::unused": 28}
    assert {name: sizes[image.symbol(name)] for name in names} == names
    assert len(sizes) == 3


@pytest.mark.skipif("gp.backend() == 'cuda'")
def test_a_compile_only_kernel_tells_what_it_uses_and_what_it_cannot() -> None:
    kernel = jit(SOURCE, "shared", arch="sm_90a")
    assert kernel.registers == 10 and kernel.local_bytes == 0
    assert kernel.shared_bytes is not None and kernel.shared_bytes >= 132
    assert kernel.__doc__ is not None and "Uses: 10 registers" in kernel.__doc__ and "sm_90a" in kernel.__doc__
    assert (kernel.occupancy().blocks, kernel.occupancy().limiter) == (8, "threads")
    variable = kernel.globals["hidden"]
    assert (variable.nbytes, variable.shape, variable.dtype) == (48, (2, 3), "float64")
    for use in (variable.read, variable.array, lambda: variable.address, lambda: variable.write(variable)):
        with pytest.raises(GPUError, match="compiled for sm_90a and the backend is sim"):
            use()


@pytest.mark.parametrize(
    ("arch", "resources", "block", "expected"),
    [
        ("sm_90a", Resources(32, 0, 0), 256, (8, 64, "threads")),
        ("sm_90", Resources(128, 0, 0), 256, (2, 16, "registers")),
        ("sm_90", Resources(33, 0, 0), 64, (24, 48, "registers")),
        ("sm_90", Resources(255, 0, 0), 1024, (0, 0, "registers")),
        ("sm_90", Resources(16, 48 << 10, 0), 128, (4, 16, "shared memory")),
        ("sm_90", Resources(16, 0, 0), 32, (32, 32, "blocks")),
        ("sm_86", Resources(16, 0, 0), 1024, (1, 32, "threads")),
        ("sm_89", Resources(16, 0, 0), 32, (24, 24, "blocks")),
        ("sm_80", Resources(16, 0, 0), 33, (32, 64, "threads")),
    ],
)
def test_occupancy_by_the_rules(arch: str, resources: Resources, block: int, expected: tuple[int, int, str]) -> None:
    found = occupancy_of(arch, resources, block)
    assert (found.blocks, found.warps, found.limiter) == expected


def test_occupancy_of_what_is_not_known() -> None:
    with pytest.raises(GPUError, match="sm_75 is not known here; known: sm_80"):
        occupancy_of("sm_75", Resources(16, 0, 0), 64)
    with pytest.raises(ValueError, match="block is 2048"):
        occupancy_of("sm_90", Resources(16, 0, 0), 2048)


def test_other_files_and_damaged_ones_are_refused() -> None:
    image = compile_source(SOURCE, arch="sm_90a").image
    for bad in (b"", b"\x7fELF", b"text" * 40, Path("/proc/self/exe").read_bytes()[:4096]):
        with pytest.raises(ValueError, match="CUBIN"):
            read_cubin(bad)
    for length in (64, len(image) // 4, len(image) // 2):
        with pytest.raises(ValueError, match="damaged"):
            read_cubin(image[:length])
