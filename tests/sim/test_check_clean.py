"""Checked mode finds nothing in correct kernels, whatever orders them, and changes nothing of what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from check_run import run

import pygpukit as gp

N = 1024
ARRAYS = "float *x, float *y, int *n"

# name: (text before the kernel, body over x, y of 1024 float32 and n of 1024 int32, grid, block)
CLEAN: dict[str, tuple[str, str, Any, Any]] = {
    "elements": ("", "int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = 2 * x[i];", 4, 256),
    "in place": ("", "int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = 2 * x[i]; x[i] += 1; y[i] = x[i];", 4, 256),
    "bounds check": ("", "int i = blockIdx.x * 300 + threadIdx.x; if (threadIdx.x < 300 && i < 1024) y[i] = x[i];", 4,
         320),
    "stencil": ("", """int i = blockIdx.x * blockDim.x + threadIdx.x; __shared__ float s[258];
        s[threadIdx.x + 1] = x[i];
        if (threadIdx.x == 0) s[0] = i ? x[i - 1] : 0;
        if (threadIdx.x == 255) s[257] = i < 1023 ? x[i + 1] : 0;
        __syncthreads(); y[i] = s[threadIdx.x] + s[threadIdx.x + 1] + s[threadIdx.x + 2];""", 4, 256),
    "tiles": ("", """__shared__ float a[16][17]; int t = threadIdx.x, u = threadIdx.y;
        for (int k = 0; k < 4; ++k) { a[u][t] = x[k * 256 + u * 16 + t]; __syncthreads();
          y[k * 256 + u * 16 + t] = a[t][u]; __syncthreads(); }""", 1, (16, 16)),
    "a guard on both sides of a barrier": ("", """__shared__ float s[256];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < 1000) s[threadIdx.x] = x[i]; __syncthreads(); if (i >= 1000) return; y[i] = s[threadIdx.x];""", 4, 256),
    "barriers of blocks that leave as a whole": ("", """if (blockIdx.x % 2) return; __shared__ float s[256];
        for (int k = 0; k <= blockIdx.x; ++k) { s[threadIdx.x] = x[k]; __syncthreads(); }
        y[blockIdx.x] = s[0];""", 4, 256),
    "early return before a warp's barrier": ("", """__shared__ float s[64]; int t = threadIdx.x; if (t >= 32) return;
        s[t] = x[t]; __syncwarp(); y[t] = s[t ^ 1];""", 1, 64),
    "reduction": ("", """__shared__ float s[256]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();
        for (int h = 128; h > 0; h /= 2) { if (t < h) s[t] += s[t + h]; __syncthreads(); }
        if (t == 0) y[0] = s[0];""", 1, 256),
    "warp reduction": ("", """float v = x[threadIdx.x]; for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
        __shared__ float s[8]; if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v; __syncthreads();
        if (threadIdx.x < 8) { v = s[threadIdx.x]; for (int d = 4; d; d /= 2) v += __shfl_down_sync(0xffu, v, d, 8);
          if (threadIdx.x == 0) y[0] = v; }""", 1, 256),
    "warp exchange": ("", """__shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; __syncwarp();
        float v = s[t ^ 1]; __syncwarp(); s[t] = v; __syncwarp(); y[t] = s[t ^ 2];""", 1, 64),
    "half warps": ("", """__shared__ float s[32]; int t = threadIdx.x; unsigned m = t < 16 ? 0xffffu : 0xffff0000u;
        for (int k = 0; k < 3; ++k) { s[t] = x[t] + k; __syncwarp(m); y[t] = s[t ^ 3]; __syncwarp(m); }""", 1, 32),
    "groups": ("#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;", """__shared__ float s[256];
        auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<8>(block); int t = block.thread_rank();
        s[t] = x[t]; tile.sync(); float v = s[t ^ 7]; tile.sync(); s[t] = v + tile.shfl_xor(v, 1); block.sync();
        y[t] = s[255 - t];""", 1, 256),
    "shared histogram": ("", """__shared__ int h[16]; if (threadIdx.x < 16) h[threadIdx.x] = 0; __syncthreads();
        atomicAdd(&h[(int)x[threadIdx.x] % 16], 1); __syncthreads();
        if (threadIdx.x < 16) atomicAdd(&n[threadIdx.x], h[threadIdx.x]);""", 3, 256),
    "global histogram": ("", "atomicAdd(&n[(int)x[threadIdx.x] % 16], 1); atomicMax(&n[20], threadIdx.x);", 3, 256),
    "float atomics": ("", "atomicAdd(&y[threadIdx.x % 4], x[threadIdx.x]);", 3, 256),
    "last block": ("__device__ unsigned done;", """__shared__ bool last; __shared__ float s[64]; int t = threadIdx.x;
        s[t] = x[blockIdx.x * 64 + t]; __syncthreads();
        if (t == 0) { float v = 0; for (int i = 0; i < 64; ++i) v += s[i]; y[blockIdx.x] = v; __threadfence();
          last = atomicAdd(&done, 1) == gridDim.x - 1; }
        __syncthreads();
        if (last && t == 0) { float v = 0; for (int i = 0; i < gridDim.x; ++i) v += y[i]; y[100] = v; done = 0; }""",
             8, 64),
    "last block, all fence": ("__device__ unsigned done;", """__shared__ bool last; int t = threadIdx.x;
        y[blockIdx.x * 64 + t] = x[t]; __threadfence(); __syncthreads();
        if (t == 0) last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1; __syncthreads();
        if (last) for (int i = 0; i < gridDim.x; ++i) x[512 + t] += y[i * 64 + t];""", 8, 64),
    "spin lock": ("__device__ int lock;", """while (atomicCAS(&lock, 0, 1) != 0); __threadfence();
        n[0] += 1; n[1] = n[0]; __threadfence(); atomicExch(&lock, 0);""", 4, 96),
    "flags": ("",
         """if (threadIdx.x == 63) { for (int i = 0; i < 64; ++i) y[i] = x[i]; __threadfence(); atomicExch(n, 1); }
        else { while (atomicAdd(n, 0) == 0); __threadfence(); y[64 + threadIdx.x] = y[threadIdx.x]; }""", 1, 64),
    "volatile flag": ("", """volatile int *flag = n; if (threadIdx.x == 40) { y[0] = x[5]; __threadfence(); *flag = 1; }
        else if (threadIdx.x == 0) { while (*flag == 0); __threadfence(); y[1] = y[0]; }""", 1, 64),
    "look-back": ("", """volatile int *state = n; int b = blockIdx.x; if (threadIdx.x == 0) {
          float sum = x[b], before = 0; y[b] = sum; __threadfence(); state[b] = 1;
          for (int i = b - 1; i >= 0; --i) { int s; while ((s = state[i]) == 0); __threadfence();
            if (s == 2) { before += y[512 + i]; break; } before += y[i]; }
          y[512 + b] = before + sum; __threadfence(); state[b] = 2; }""", 40, 32),
    "producer and consumer warps": ("",
         """__shared__ float s[32]; __shared__ volatile int full; int t = threadIdx.x % 32;
        if (threadIdx.x == 0) full = 0; __syncthreads();
        if (threadIdx.x < 32) { s[t] = x[t]; __syncwarp(); if (t == 0) { __threadfence_block(); full = 1; } }
        else { if (t == 0) { while (!full); __threadfence_block(); } __syncwarp(); y[t] = s[31 - t]; }""", 1, 64),
    "same value by all": ("", "__shared__ int any; any = 0; __syncthreads(); if (x[threadIdx.x] > 3) any = 1; "
        "__syncthreads(); y[threadIdx.x] = any; n[5] = 7;", 2, 256),
    "bytes": ("", """__shared__ unsigned char c[256]; c[threadIdx.x] = threadIdx.x; __syncthreads();
        ((unsigned char *)y)[threadIdx.x] = c[255 - threadIdx.x];""", 1, 256),
    "dynamic shared": ("", """extern __shared__ float s[]; int *k = (int *)(s + 128); s[threadIdx.x] = x[threadIdx.x];
        k[threadIdx.x] = threadIdx.x; __syncthreads(); y[threadIdx.x] = s[127 - threadIdx.x] + k[threadIdx.x ^ 1];""",
             1, 128),
    "vectors": ("", "float4 v = ((const float4 *)x)[threadIdx.x]; v.x += 1; ((float4 *)y)[threadIdx.x] = v;", 1, 256),
    "local arrays": ("__device__ __noinline__ float total(const float *p) { float t = 0; for (int i = 0; i "
     "< 9; ++i) t += p[i]; return t; }",
        "float a[9]; for (int i = 0; i < 9; ++i) a[(i * 5) % 9] = x[i] * threadIdx.x; y[threadIdx.x] = total(a);", 2,
             64),
    "variables": ("__constant__ float c[4] = {1, 2, 3, 4}; __device__ int hits[8];",
        "y[threadIdx.x] = c[threadIdx.x % 4]; atomicAdd(&hits[threadIdx.x % 8], 1);", 2, 64),
    "heap": ("",
         "int *p = (int *)malloc(4 * sizeof(int)); for (int i = 0; i < 4; ++i) p[i] = threadIdx.x; "
          "n[threadIdx.x] = p[3]; free(p);",
        1, 64),
    "print": ("", 'if (threadIdx.x == 0) printf("%s %f\\n", "text", (double)x[1]);', 1, 32),
    "half": ("#include <cuda_fp16.h>", "__half *h = (__half *)y; h[threadIdx.x] = __float2half(x[threadIdx.x]); "
        "h[threadIdx.x] = __hadd(h[threadIdx.x], h[threadIdx.x]);", 1, 256),
    "three dimensions": ("", "int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; "
        "y[(blockIdx.y * 2 + blockIdx.x) * 64 + t] = x[t];", (2, 2), (4, 4, 4)),
    "copies": ("",
         "__shared__ float s[64]; if (threadIdx.x == 0) memcpy(s, x, 256); __syncthreads(); y[threadIdx.x] "
          "= s[threadIdx.x];",
        1, 64),
    "double barrier loops": ("", """__shared__ double s[33]; int t = threadIdx.x; for (int k = 0; k < 40; ++k) {
        s[t] = k + t; if (__syncthreads_or(k == 39 && t == 3)) break;
        y[t] = s[(t + k) % 33]; __syncthreads(); }""", 1, 33),
}  # fmt: skip


def arrays() -> tuple[Any, Any, Any]:
    return (
        gp.from_numpy(np.arange(N, dtype=np.float32) % 97),
        gp.zeros(N, dtype="float32"),
        gp.zeros(N, dtype="int32"),
    )


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found(name: str) -> None:
    before, body, grid, block = CLEAN[name]
    source = f"{before}\n__global__ void k({ARRAYS}) {{ {body} }}"
    shared = 1024 if "extern" in body else 0
    checked, plain = arrays(), arrays()
    for _ in range(2):  # again, over the shadows of the first; flags are down once more
        checked, plain = (*checked[:2], arrays()[2]), (*plain[:2], arrays()[2])
        found = run(source, grid, block, *checked, shared=shared)
        assert found is None, found
        if name == "volatile flag":  # nobody else gets the core while a plain kernel reads in a loop
            continue
        assert run(source, grid, block, *plain, shared=shared, check=False) is None
        for one, other in zip(checked, plain, strict=True):
            np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())


@pytest.mark.parametrize("name", ["elements", "stencil", "last block", "volatile flag"])
def test_memory_mode_finds_nothing(name: str) -> None:
    before, body, grid, block = CLEAN[name]
    assert run(f"{before}\n__global__ void k({ARRAYS}) {{ {body} }}", grid, block, *arrays(), check="memory") is None
