"""Atomic functions of device code for every type and scope: sums, extremes, exchanges, bits; on both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp

pytestmark = pytest.mark.usefixtures("backend_name")

THREADS = 512


def run(parameters: str, body: str, *arrays: np.ndarray) -> list[np.ndarray]:
    source = f"""
#include <cuda_bf16.h>
__global__ void k({parameters}) {{
  int t = blockIdx.x * blockDim.x + threadIdx.x;
{body}
}}"""
    device: list[Any] = [gp.from_numpy(array) for array in arrays]
    gp.jit(source, func="k")[4, THREADS // 4](*device)
    return [array.to_numpy() for array in device]


def test_sums_of_every_type_and_scope() -> None:
    t = np.arange(THREADS)
    total = int(t.sum())
    i, u, w, f, d = run(
        "int *i, unsigned *u, unsigned long long *w, float *f, double *d",
        """
  atomicAdd(i, t); atomicAdd_block(i + 1, t); atomicAdd_system(i + 2, -t); atomicSub(i + 3, t);
  atomicAdd(u, (unsigned)t << 20); atomicSub_system(u + 1, 1u);
  atomicAdd(w, (unsigned long long)t << 40); atomicAdd_block(w + 1, ~0ull);
  atomicAdd(f, 0.5f); atomicAdd_system(f + 1, -1.0f); atomicAdd(d, 0.25); atomicAdd_block(d + 1, t * 1e9);
  atomicAdd((float2 *)(f + 2), make_float2(1.0f, t)); atomicAdd((float4 *)(f + 4), make_float4(1, 2, 3, t));""",
        np.zeros(4, np.int32), np.zeros(2, np.uint32), np.zeros(2, np.uint64), np.zeros(8, np.float32), np.zeros(2),
    )  # fmt: skip
    assert i.tolist() == [total, total, -total, -total]
    assert u.tolist() == [(total << 20) % 2**32, 2**32 - THREADS]
    assert w.tolist() == [(total << 40) % 2**64, 2**64 - THREADS]
    assert f.tolist() == [THREADS / 2, -THREADS, THREADS, total, THREADS, 2 * THREADS, 3 * THREADS, total]
    assert d.tolist() == [THREADS / 4, total * 1e9]


def test_extremes_bits_and_counters() -> None:
    i, u, s, w = run(
        "int *i, unsigned *u, long long *s, unsigned long long *w",
        """
  atomicMin(i, -t); atomicMax(i + 1, t - 5); atomicAnd(i + 2, ~(1 << t % 31)); atomicOr(i + 3, 1 << t % 31);
  atomicXor(i + 4, 3 << t % 30);
  atomicMin(u, ~(unsigned)t); atomicMax(u + 1, ~(unsigned)t); atomicInc(u + 2, 9); atomicDec(u + 3, 9);
  atomicMin_system(s, -((long long)t << 33)); atomicMax_block(s + 1, (long long)t << 33);
  atomicMin(w, ~((unsigned long long)t << 33)); atomicMax(w + 1, 1ull << 63 | t);
  atomicAnd(w + 2, ~(1ull << t % 63)); atomicOr(w + 3, 1ull << t % 63); atomicXor(w + 4, 1ull << t % 63);""",
        np.array([0, 0, -1, 0, 0], np.int32), np.array([2**32 - 1, 0, 0, 0], np.uint32), np.zeros(2, np.int64),
        np.array([2**64 - 1, 0, 2**64 - 1, 0, 0], np.uint64),
    )  # fmt: skip
    t = range(THREADS)
    bits = int(np.bitwise_xor.reduce([3 << x % 30 for x in t]))
    wide = int(np.bitwise_xor.reduce(np.array([1 << x % 63 for x in t], np.uint64)))
    last = THREADS - 1
    assert i.tolist() == [-last, last - 5, -(2**31), 2**31 - 1, int(np.uint32(bits % 2**32).view(np.int32))]
    assert u.tolist() == [2**32 - THREADS, 2**32 - 1, THREADS % 10, -THREADS % 10]
    assert s.tolist() == [-(last << 33), last << 33]
    assert w.tolist() == [2**64 - 1 - (last << 33), 2**63 | last, 2**63, 2**63 - 1, wide]


def test_exchanges() -> None:
    """Every thread puts its number in and takes another out: what is left and what was taken are all of them."""
    o, slot, f, c = run(
        "int *o, int *slot, float *f, unsigned short *c",
        """
  o[t] = atomicExch(slot, t);
  atomicExch(f, 2.5f);
  for (int old = slot[1], seen; ; old = seen)  // an increment by compare and exchange
    if ((seen = atomicCAS(slot + 1, old, old + 1)) == old) break;
  if (t == 3) { c[1] = atomicCAS(c, (unsigned short)7, (unsigned short)9); c[2] = atomicCAS(c, (unsigned short)7,
    (unsigned short)11); }""",
        np.zeros(THREADS, np.int32), np.array([-1, 0], np.int32), np.zeros(1, np.float32),
        np.array([7, 0, 0], np.uint16),
    )  # fmt: skip
    assert sorted([*o.tolist(), int(slot[0])]) == [-1, *range(THREADS)]
    assert slot[1] == THREADS and f[0] == 2.5 and c.tolist() == [9, 7, 9]
