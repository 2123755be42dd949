"""Checked mode finds what a kernel does wrong: kind, line, thread, block, array and index of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from check_run import run

import pygpukit as gp
from pygpukit.core.errors import Finding

N = 1024


@dataclass(frozen=True)
class Case:
    """A kernel over x and y of 1024 float32, and of what is found: kind, line, thread, block, array and index."""

    name: str
    body: str
    kind: str
    line: int
    thread: tuple[int, int, int]
    array: str = ""
    index: int | None = None
    block: tuple[int, int, int] = (0, 0, 0)
    grid: Any = 1
    threads: Any = 256
    shared: int = 0
    before: str = ""  # one line before the kernel, whose body starts on line 3


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
CASES = [
    Case("read past the end", f"{INDEX}\ny[i] = x[i + 1];", "out of bounds", 4, (255, 0, 0), "x", 1024, (3, 0, 0), 4),
    Case("write past the end", f"{INDEX}\ny[i + 1] = x[i];", "out of bounds", 4, (255, 0, 0), "y", 1024, (3, 0, 0), 4),
    Case("before the start", f"{INDEX}\ny[i] = x[i - 1];", "out of bounds", 4, (0, 0, 0), "x", -1),
    Case("far away", "y[threadIdx.x] = x[threadIdx.x + 1000000];", "out of bounds", 3, (0, 0, 0), "x", 1000000),
    Case("no bounds check", f"{INDEX}\ny[i] = 1;", "out of bounds", 4, (0, 0, 0), "y", 1024, (4, 0, 0), 5),
    Case("vector past the end", "((float4 *)y)[threadIdx.x] = make_float4(1, 2, 3, 4);", "out of bounds", 3, (256, 0,
         0),
         "y", 1024, threads=512),
    Case("atomic past the end", "\natomicAdd(&y[threadIdx.x * 5], 1.f);", "out of bounds", 4, (205, 0, 0), "y", 1025),
    Case("null pointer", "float *p = nullptr;\np[threadIdx.x] = 1;", "out of bounds", 4, (0, 0, 0)),
    Case("no address of the device", "((float *)0x123456789000)[2] = 1;", "out of bounds", 3, (0, 0, 0)),
    Case("inner index of a tile",
         "__shared__ float t[16][16];\nt[threadIdx.y][threadIdx.x] = 1;\n__syncthreads();\n"
         "y[threadIdx.x] = t[threadIdx.y][threadIdx.x + 1];", "out of bounds", 6, (15, 0, 0), "t", 16, threads=(16,
              16)),
    Case("dynamic shared memory",
         "extern __shared__ float s[];\ns[threadIdx.x] = 1;", "out of bounds", 4, (100, 0, 0), "s", 100, shared=400),
    Case("shared through a pointer",
         "__shared__ float s[64];\nfill(s);", "out of bounds", 1, (64, 0, 0), "s", 64,
         before="__device__ __noinline__ void fill(float *p) { p[threadIdx.x] = 1; }"),
    Case("variable of the device", "table[threadIdx.x] = 1;", "out of bounds", 3, (10, 0, 0), "table", 10,
         before="__device__ int table[10];"),
    Case("misaligned", "*(float *)((char *)y + threadIdx.x + 4) = 1;", "misaligned", 3, (1, 0, 0), "y", 1),
    Case("misaligned vector", "*(float4 *)(y + threadIdx.x) = make_float4(1, 2, 3, 4);", "misaligned", 3, (1, 0, 0),
         "y", 1),
    Case("uninitialised", "__shared__ float s[256];\ny[threadIdx.x] = s[threadIdx.x];", "uninitialised", 4, (0, 0, 0),
         "s", 0),
    Case("partly uninitialised",
         "__shared__ float s[256];\nif (threadIdx.x < 200) s[threadIdx.x] = 1;\n__syncthreads();\n"
         "y[threadIdx.x] = s[threadIdx.x];", "uninitialised", 6, (200, 0, 0), "s", 200),
    Case("uninitialised accumulator", "__shared__ int total;\natomicAdd(&total, 1);", "uninitialised", 4, (0, 0, 0),
         "total", 0),
    Case("missing first barrier",
         "__shared__ float s[256];\ns[threadIdx.x] = x[threadIdx.x];\ny[threadIdx.x] = s[(threadIdx.x + 1) % 256];",
         "race", 5, (0, 0, 0), "s", 1),
    Case("missing second barrier",
         "__shared__ float s[256];\nfor (int k = 0; k < 2; ++k) {\ns[threadIdx.x] = x[threadIdx.x] + "
          "k;\n__syncthreads();\n"
         "y[threadIdx.x] = s[threadIdx.x ^ 1];\n}", "race", 7, (1, 0, 0), "s", 0),
    Case("write after read",
         "__shared__ float s[256];\ns[threadIdx.x] = x[threadIdx.x];\n__syncthreads();\n"
         "float v = s[(threadIdx.x + 1) % 256];\ns[threadIdx.x] = v;", "race", 7, (1, 0, 0), "s", 1),
    Case("reduction without barriers",
         "__shared__ float s[256];\ns[threadIdx.x] = x[threadIdx.x];\n__syncthreads();\n"
         "for (int h = 128; h; h /= 2)\nif (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];", "race", 7, (1, 0,
              0), "s", 1),
    Case("racy histogram", "int b = threadIdx.x % 7;\ny[b] += 1;", "race", 4, (7, 0, 0), "y", 0),
    Case("race between blocks", "if (threadIdx.x == 3) y[0] += blockIdx.x;", "race", 3, (3, 0, 0), "y", 0, (1, 0, 0),
         2),
    Case("two writers", "y[threadIdx.x / 2] = threadIdx.x;", "race", 3, (1, 0, 0), "y", 0),
    Case("plain write and atomic", "if (threadIdx.x == 0) y[5] = 1;\natomicAdd(&y[5], 1.f);", "race", 4, (1, 0, 0),
         "y", 5),
    Case("missing __syncwarp",
         "__shared__ float s[32];\ns[threadIdx.x] = x[threadIdx.x];\n__syncwarp();\nfloat v = s[threadIdx.x ^ 1];\n"
         "s[threadIdx.x] = v;", "race", 6, (1, 0, 0), "s", 0, threads=32),
    Case("__syncwarp of the other half",
         "__shared__ float s[32];\ns[threadIdx.x] = x[threadIdx.x];\n"
         "__syncwarp(threadIdx.x < 16 ? 0xffffu : 0xffff0000u);\ny[threadIdx.x] = s[31 - threadIdx.x];", "race", 6,
              (15, 0, 0),
         "s", 16, threads=32),
    Case("volatile is no barrier",
         "__shared__ volatile float s[64];\ns[threadIdx.x] = x[threadIdx.x];\n__syncthreads();\n"
         "if (threadIdx.x < 32) {\ns[threadIdx.x] += s[threadIdx.x + 32];\ns[threadIdx.x] += s[threadIdx.x + 16];\n}",
         "race", 7, (16, 0, 0), "s", 16, threads=64),
    Case("last block without a fence",
         "__shared__ bool last;\nif (threadIdx.x == 0) {\nx[blockIdx.x] = blockIdx.x;\n"
         "last = atomicAdd(&count, 1) == gridDim.x - 1;\n}\n__syncthreads();\nif (last && threadIdx.x < gridDim.x)\n"
         "y[threadIdx.x] = x[threadIdx.x];", "race", 10, (0, 0, 0), "x", 0, (3, 0, 0), 4, 32,
              before="__device__ unsigned count;"),
    Case("barrier in both branches",
         "if (threadIdx.x < 32)\n__syncthreads();\nelse\n__syncthreads();", "divergent barrier", 4, (0, 0, 0),
              threads=128),
    *(Case(f"barrier that part of a block never reaches: {name}", body, "divergent barrier", line, (thread, 0, 0),
           threads=64, before="#include <cooperative_groups.h>")
      for name, body, line, thread in (
        ("a condition within a warp", "if (threadIdx.x < 48)\n__syncthreads();", 4, 48),
        ("a condition of whole warps", "if (threadIdx.x < 32)\n__syncthreads();", 4, 32),
        ("an early return", "if (threadIdx.x >= 40) return;\n__syncthreads();\ny[threadIdx.x] = 1;", 4, 40),
        ("more turns of a loop", "for (int k = 0; k <= (threadIdx.x > 5); ++k)\n__syncthreads();", 4, 0),
        ("a case of a switch", "switch (threadIdx.x % 3) {\ncase 0:\ncase 1:\n__syncthreads();\n}", 6, 2),
        ("a function", "if (threadIdx.x != 9)\n[] { __syncthreads(); }();", 4, 9),
        ("the second of two", "__syncthreads();\nif (threadIdx.x < 63)\n__syncthreads();", 5, 63),
        ("__syncthreads_or", "if (threadIdx.x > 2)\ny[threadIdx.x] = __syncthreads_or(threadIdx.x == 3);", 4, 0),
        ("__syncthreads_and", "if (threadIdx.x > 2)\ny[threadIdx.x] = __syncthreads_and(1);", 4, 0),
        ("__syncthreads_count", "if (threadIdx.x > 2)\ny[threadIdx.x] = __syncthreads_count(1);", 4, 0),
        ("a group", "if (threadIdx.x < 48)\ncooperative_groups::this_thread_block().sync();", 4, 48),
      )),
    Case("deadlock", "if (threadIdx.x < 32) __syncwarp();\nelse __syncthreads();\n"
         "if (threadIdx.x == 5) __shfl_sync(0xffffffff, 1, 0);\n__syncthreads();", "deadlock", 5, (5, 0, 0),
              threads=64),
    Case("lane outside its mask", "\n__shfl_sync(0xffffu, threadIdx.x, 0);", "warp mask", 4, (16, 0, 0), threads=32),
    Case("lane that has exited", "if (threadIdx.x >= 20) return;\n"
         "y[threadIdx.x] = __shfl_down_sync(0xffffffff, x[threadIdx.x], 16);", "warp mask", 4, (4, 0, 0), threads=32),
    Case("division by zero", "int d = (int)threadIdx.x - 9;\ny[threadIdx.x] = 100 / d;", "integer division by zero", 4,
         (9, 0, 0)),
    Case("remainder by zero", "y[threadIdx.x] = 100 % (threadIdx.x & 7u);", "integer division by zero", 3, (0, 0, 0)),
    Case("assertion", "\nassert(threadIdx.x < 7);", "assert", 4, (7, 0, 0)),
    Case("trap", "if (threadIdx.x == 6)\n__trap();", "assert", 4, (6, 0, 0)),
    Case("stack overflow", "y[0] = deep(1000000);", "stack overflow", 1, (0, 0, 0), threads=1,
         before="__device__ int deep(int n) { volatile int a[999]; a[n % 999] = n; return n ? deep(n - 1) + "
          "a[n % 999] : 0; }"),
    Case("block and thread in three dimensions", "if (blockIdx.y == 1 && threadIdx.z == 2) y[-3] = 1;",
         "out of bounds", 3,
         (0, 0, 2), "y", -3, (0, 1, 0), (2, 2), (4, 4, 4)),
]  # fmt: skip


@pytest.fixture
def x() -> Any:
    return gp.from_numpy(np.arange(N, dtype=np.float32))


@pytest.fixture
def y() -> Any:
    return gp.zeros(N, dtype="float32")


def source(body: str, before: str = "") -> str:
    return f"{before}\n__global__ void k(float *x, float *y) {{\n{body}\n}}\n"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_finding(case: Case, x: Any, y: Any) -> None:
    found = run(source(case.body, case.before), case.grid, case.threads, x, y, shared=case.shared)
    assert found is not None
    expected = Finding(case.kind, found.message, "k", case.block, case.thread, case.line, case.array, case.index)
    assert found == expected, found.message
