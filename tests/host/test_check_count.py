"""Bytes and floating-point operations of launches, against what the source says."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.jit.count import Counts, count
from pygpukit.jit.sim_flops import COUNTS_FLOPS

pytestmark = pytest.mark.skipif(not COUNTS_FLOPS, reason="operations are counted on x86-64 only")


def test_elements() -> None:
    x, y = gp.ones(1000, dtype="float32"), gp.zeros(1000, dtype="float32")
    kernel = gp.jit("__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + "
         "threadIdx.x; "
                    "if (i < n) y[i] = 2.5f * x[i] + y[i]; }")  # fmt: skip
    assert count(kernel, (4, 256), (x, y, 1000)) == Counts(8000, 4000, 0, 2000)
    assert not y.to_numpy().any()  # as before


def test_tiled_matmul() -> None:
    n = 64
    source = """__global__ void mm(const float *a, const float *b, float *c, int n) {
  __shared__ float s[16][16], t[16][16];
  int x = threadIdx.x, y = threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    s[y][x] = a[(blockIdx.y * 16 + y) * n + k + x];
    t[y][x] = b[(k + y) * n + blockIdx.x * 16 + x];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += s[y][i] * t[i][x];
    __syncthreads();
  }
  c[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = sum;
}"""
    a, b, c = (gp.ones((n, n), dtype="float32") for _ in range(3))
    found = count(gp.jit(source), ((n // 16, n // 16), (16, 16)), (a, b, c, n))
    loads = 2 * n**3 // 16 * 4
    assert found == Counts(loads, n * n * 4, loads + 2 * n**3 * 4, 2 * n**3)


def test_doubles_divisions_and_vectors() -> None:
    x, y = gp.from_numpy(np.arange(1, 65, dtype=np.float64)), gp.zeros(64, dtype="float64")
    kernel = gp.jit(
        "__global__ void k(const double *x, double *y) { int i = threadIdx.x; y[i] = sqrt(x[i]) / (x[i] - 0.5); }"
    )
    assert count(kernel, (1, 64), (x, y)) == Counts(512, 512, 0, 192)
    z, w = gp.ones(64, dtype="float32"), gp.zeros(64, dtype="float32")
    copy = gp.jit("__global__ void k(const float4 *x, float4 *y) { y[threadIdx.x] = x[threadIdx.x]; }")
    assert count(copy, (1, 16), (z, w)) == Counts(256, 256, 0, 0)


def test_atomics_load_and_store() -> None:
    y = gp.zeros(4, dtype="int32")
    kernel = gp.jit("__global__ void k(int *y) { atomicAdd(&y[threadIdx.x % 4], 1); }")
    assert count(kernel, (2, 32), (y,)) == Counts(256, 256, 0, 0)


def test_cuda_kernels_are_refused() -> None:
    kernel = gp.jit("__global__ void k(float *y) { y[0] = 1; }")
    kernel._unit._arch = "sm_90"
    with pytest.raises(ValueError, match="runs on the simulation"):
        count(kernel, (1, 1), (gp.zeros(1),))
