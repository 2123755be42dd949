"""What only a device can say about kernels: resources and occupancy as the driver has them, clusters, cooperation."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native
from pygpukit.core.errors import KernelArgumentError
from pygpukit.jit import jit, sass_lines
from pygpukit.jit.inspect.occupancy import occupancy_of
from pygpukit.jit.toolchain import nvdisasm

SOURCE = """
__constant__ float table[4] = {1, 2, 3, 4};
__global__ void plain(float* x) { x[threadIdx.x] *= table[threadIdx.x & 3]; }
__global__ void shared(float* x) {
    __shared__ float t[4000];
    t[threadIdx.x] = x[0];
    __syncthreads();
    x[1] = t[32 - threadIdx.x];
}
__global__ void local(float* x, int n) {
    volatile float a[64];
    for (int i = 0; i < 64; ++i) a[i] = x[i * n];
    x[n] = a[n] + a[n + 1];
}
__global__ void many(float* x, int n) {
    float a[48];
#pragma unroll
    for (int i = 0; i < 48; ++i) a[i] = x[i * n];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 48; ++i) x[i * n] = a[47 - i] * a[i];
}
"""


@pytest.mark.parametrize("name", ["plain", "shared", "local", "many"])
def test_the_image_tells_what_the_driver_tells(name: str) -> None:
    kernel = jit(SOURCE, name)
    found = kernel.unit.resources(kernel.signature)
    assert found is not None
    assert (found.registers, found.shared_bytes, found.local_bytes) == (
        kernel.registers,
        kernel.shared_bytes,
        kernel.local_bytes,
    )
    assert kernel.__doc__ is not None and f"{kernel.registers} registers" in kernel.__doc__
    for block in (32, 33, 64, 128, 256, 384, 512, 1024):
        for dynamic in (0, 1000, 20000, 40000):
            by_rules = occupancy_of(kernel.compiled.arch, found, block, dynamic)
            assert by_rules.blocks == kernel.occupancy(block, dynamic).blocks, (name, block, dynamic)


def test_a_cluster_has_the_blocks_that_were_asked_for() -> None:
    if native.device_info(0)["compute_major"] < 9:
        pytest.skip("clusters need SM 9.0")
    source = """
    __global__ void ranks(unsigned* out) {
        unsigned blocks, rank;
        asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
        asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        if (threadIdx.x == 0) out[blockIdx.x + gridDim.x * blockIdx.y] = 100 * blocks + rank;
    }"""
    kernel = jit(source)
    for cluster, blocks in ((1, 1), (2, 2), ((4, 2), 8), ((8, 2), 16)):
        out = gp.zeros(64, dtype="uint32")
        kernel.launcher((16, 4), 32, cluster=cluster)(out)
        values = out.to_numpy()
        assert set(values // 100) == {blocks}
        assert sorted(values % 100) == sorted(list(range(blocks)) * (64 // blocks))


def test_the_whole_device_waits_for_itself() -> None:
    kernel = jit(
        "#include <cooperative_groups.h>\n__global__ void k(unsigned* seen, unsigned* out) {\n"
        "  if (threadIdx.x == 0) atomicAdd(seen, 1); cooperative_groups::this_grid().sync();\n"
        "  if (threadIdx.x == 0) out[blockIdx.x] = *(volatile unsigned*)seen; }"
    )
    blocks = kernel.occupancy(256).blocks * int(native.device_info(0)["multiprocessor_count"])
    seen, out = gp.zeros(1, dtype="uint32"), gp.zeros(blocks, dtype="uint32")
    kernel.launcher(blocks, 256, cooperative=True)(seen, out)
    np.testing.assert_array_equal(out.to_numpy(), np.full(blocks, blocks))
    with pytest.raises(KernelArgumentError, match="all blocks run at once"):
        kernel.launcher(blocks + 1, 256, cooperative=True)


def test_shared_memory_to_the_last_byte() -> None:
    kernel = jit(
        "__global__ void k(int* out, int n) { extern __shared__ int s[]; s[n - 1] = 7; __syncthreads();\n"
        "  out[0] = s[n - 1]; }"
    )
    limit = int(native.device_info(0)["max_shared_per_block_optin_bytes"])
    out = gp.zeros(1, dtype="int32")
    wide = kernel[1, 32, limit]
    kernel[1, 32, 50000](out, 12500)
    wide(out, limit // 4)
    assert int(out.to_numpy()[0]) == 7


@pytest.mark.skipif(nvdisasm() is None, reason="nvdisasm is not installed (extra inspect)")
def test_sass_of_a_loaded_kernel() -> None:
    kernel = jit(SOURCE, "plain")
    assert kernel.sass is not None and "EXIT" in kernel.sass
    assert {one.line for one in sass_lines(kernel) if "STG" in one.text} == {3}
