"""PTX's exit on the simulated device: threads end in any function, before and after others wait."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import CompileError, KernelCheckError
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.nvrtc import get_nvrtc_version

RNG = np.random.default_rng()

# Two functions deep, in a loop, behind a predicate.
LEAVE = """__device__ __noinline__ void leave(unsigned x, unsigned bound) {
  asm volatile("{ .reg .pred p; setp.ge.u32 p, %0, %1; @p exit; }" :: "r"(x), "r"(bound));
}
__device__ __noinline__ unsigned climb(unsigned x, unsigned bound) {
  for (int i = 0; i < 3; ++i) leave(x + i, bound);
  return x + 2;
}
"""


def launched(body: str, grid: object, block: object, *arguments: object, check: bool = False, **options: bool) -> None:
    """Runs a kernel, which NVRTC, where it is installed, must take, too."""
    source = f'{LEAVE}extern "C" __global__ void k{body}'
    if get_nvrtc_version() is not None:
        compile_source(source, arch="sm_90a")
    gp.jit(source, func="k", check=check).launcher(grid, block, **options)(*arguments)
    gp.synchronize()


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("grid", "block"), [(7, 33), ((2, 3), (5, 4, 3)), (1, 1), (3, 1024)])
def test_threads_that_end_in_inner_functions(grid: object, block: object, check: bool) -> None:
    threads, blocks = int(np.prod(block)), int(np.prod(grid))
    x = RNG.integers(0, 100, blocks * threads, dtype="u4")
    out = gp.from_numpy(np.full(x.size, 7777, "u4"))
    body = """(const unsigned *x, unsigned *out) {
  const int here = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int at = (blockIdx.x + gridDim.x * blockIdx.y) * (blockDim.x * blockDim.y * blockDim.z) + here;
  out[at] = climb(x[at], 50);
}"""
    launched(body, grid, block, gp.from_numpy(x), out, check=check)
    assert np.array_equal(out.to_numpy(), np.where(x < 48, x + 2, 7777))


@pytest.mark.parametrize("check", [False, True])
def test_blocks_whose_threads_all_end(check: bool) -> None:
    out = gp.from_numpy(np.zeros(9, "u4"))
    body = """(unsigned *out) {
  if (threadIdx.x == 0) out[blockIdx.x] = blockIdx.x + 1;
  asm volatile("exit;");
  out[blockIdx.x] = 99;
}"""
    launched(body, 9, 64, out, check=check)
    assert np.array_equal(out.to_numpy(), np.arange(1, 10))


@pytest.mark.parametrize("check", [False, True])
def test_others_wait_and_go_on(check: bool) -> None:
    """Warps that end after a barrier; those left have one of their own, votes and shuffles among them."""
    x = RNG.integers(0, 1000, (3, 128), dtype="u4")
    out = gp.from_numpy(np.zeros((3, 128), "u4"))
    body = """(const unsigned *x, unsigned *out) {
  __shared__ unsigned tile[128];
  const int i = threadIdx.x, at = blockIdx.x * 128 + i;
  tile[i] = x[at];
  __syncthreads();
  climb(i, i < 32 || i >= 96 ? 1000 : 0);
  asm volatile("bar.sync 1, 64;" ::: "memory");
  out[at] = tile[127 - i] + __reduce_max_sync(~0u, tile[i]);
  asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 96; @p exit; }" :: "r"(i & 96));
  out[at] += __shfl_xor_sync(~0u, tile[i], 1) + __popc(__activemask());
}"""
    launched(body, 3, 128, gp.from_numpy(x), out, check=check)
    most = x.reshape(3, 4, 32).max(2).repeat(32, axis=1)
    swapped = x.reshape(3, 64, 2)[:, :, ::-1].reshape(3, 128)
    expected = x[:, ::-1] + most
    expected[:, :32] += swapped[:, :32] + 32
    expected[:, 32:96] = 0
    assert np.array_equal(out.to_numpy(), expected)


def test_a_barrier_of_the_block_counts_those_that_are_left() -> None:
    out = gp.from_numpy(np.zeros((4, 100), "u4"))
    body = """(unsigned *out) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  climb(threadIdx.x % 3, 5);
  for (int round = 0; round < 3; ++round) {
    atomicAdd(&sum, 1);
    __syncthreads();
    climb(threadIdx.x, 62 - 20 * round);
  }
  out[blockIdx.x * 100 + threadIdx.x] = sum;
}"""
    launched(body, 4, 100, out)
    assert np.array_equal(out.to_numpy(), np.where(np.arange(100) < 20, 100 + 60 + 40, 0)[None].repeat(4, 0))


@pytest.mark.parametrize("check", [False, True])
def test_grid_sync_after_some_have_ended(check: bool) -> None:
    out = gp.from_numpy(np.zeros(5, "u4"))
    body = """(unsigned *out) {
  if (threadIdx.x) asm volatile("exit;");
  out[blockIdx.x] = 10 + blockIdx.x;
  cooperative_groups::this_grid().sync();
  const unsigned next = out[(blockIdx.x + 1) % gridDim.x];
  cooperative_groups::this_grid().sync();
  out[blockIdx.x] += next;
}"""
    source = f'#include <cooperative_groups.h>\nextern "C" __global__ void k{body}'
    gp.jit(source, func="k", check=check).launcher(5, 1, cooperative=True)(out)
    assert np.array_equal(out.to_numpy(), 20 + np.arange(5) + (np.arange(5) + 1) % 5)


def test_a_barrier_that_ended_threads_never_reach_is_told() -> None:
    body = """(unsigned *out) {
  __shared__ unsigned tile[64];
  tile[threadIdx.x] = 1;
  climb(threadIdx.x, 10);
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}"""
    with pytest.raises(KernelCheckError) as told:
        launched(body, 1, 64, gp.zeros(64, "uint32"), check=True)
    assert told.value.findings[0].kind == "divergent barrier"


def test_exit_takes_no_operand() -> None:
    with pytest.raises(CompileError, match="exit"):
        gp.jit('extern "C" __global__ void k(int x) { asm("exit %0;" :: "r"(x)); }', func="k")
