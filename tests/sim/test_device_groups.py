"""Cooperative groups in device code: partitions, reductions, scans, copies; grids and clusters, on both backends."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native

HEAD = """
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
"""
COOPERATIVE, CLUSTER = 1, 2

pytestmark = pytest.mark.usefixtures("backend_name")


def run(body: str, threads: int, rows: int = 1, kind: str = "int", before: str = "") -> np.ndarray:
    """o[row * n + t], written by one block in which `t` is the thread and `block` the group."""
    source = f"""{HEAD}{before}
__global__ void k({kind} *o) {{
  cg::thread_block block = cg::this_thread_block();
  int t = block.thread_rank(), n = block.size();
{body}
}}"""
    out = gp.from_numpy(np.zeros((rows, threads), {"int": np.int32, "float": np.float32, "double": np.float64}[kind]))
    gp.jit(source, func="k")[1, threads](out)
    return out.to_numpy()


def test_tiles_of_tiles_and_their_ranks() -> None:
    got = run(
        """
  auto tile = cg::tiled_partition<16>(block);
  auto part = cg::tiled_partition<4>(tile);
  cg::thread_block_tile<4> plain = part;
  o[t] = tile.thread_rank() + 100 * tile.meta_group_rank() + 10000 * tile.meta_group_size();
  o[n + t] = part.thread_rank() + 100 * part.meta_group_rank() + 10000 * part.meta_group_size();
  o[2 * n + t] = plain.shfl_xor(t, 1) + 1000 * part.shfl_up(t, 2);
  o[3 * n + t] = tile.shfl_down(t, 5) + 1000 * tile.any(t == 17) + 10000 * tile.all(t < 32);
  o[4 * n + t] = (int)(part.ballot(t % 2) + 100 * part.match_any(t / 2));""",
        64,
        5,
    )
    t = np.arange(64)
    assert np.array_equal(got[0], t % 16 + 100 * (t // 16) + 10000 * 4)
    assert np.array_equal(got[1], t % 4 + 100 * (t % 16 // 4) + 10000 * 4)
    assert np.array_equal(got[2], (t ^ 1) + 1000 * np.where(t % 4 >= 2, t - 2, t))
    down = np.where(t % 16 < 11, t + 5, t)
    assert np.array_equal(got[3], down + 1000 * (t // 16 == 1) + 10000 * (t < 32))
    assert np.array_equal(got[4], 0b1010 + 100 * np.where(t % 4 < 2, 0b0011, 0b1100))


def test_partitions_that_the_data_make() -> None:
    got = run(
        """
  auto warp = cg::tiled_partition<32>(block);
  cg::coalesced_group same = cg::labeled_partition(warp, t % 5);
  o[t] = cg::reduce(same, 1, cg::plus<int>()) + 100 * same.meta_group_rank() + 10000 * same.meta_group_size();
  cg::coalesced_group side = cg::binary_partition(warp, t % 3 == 0);
  o[n + t] = side.size() + 100 * side.thread_rank() + 10000 * side.meta_group_rank();
  cg::coalesced_group all = cg::coalesced_threads();
  cg::coalesced_group fives = cg::tiled_partition(all, 8);
  o[2 * n + t] = cg::reduce(fives, t, cg::greater<int>()) + 1000 * fives.meta_group_size();
  cg::thread_group any = cg::tiled_partition(block, 4);
  any.sync();
  o[3 * n + t] = any.thread_rank() + 10 * any.size() + 100 * cg::group_size(block);""",
        32,
        4,
    )
    t = np.arange(32)
    members = np.array([7, 7, 6, 6, 6])
    assert np.array_equal(got[0], members[t % 5] + 100 * (t % 5) + 10000 * 5)
    third = t % 3 == 0
    rank = np.where(third, np.cumsum(third) - 1, np.cumsum(~third) - 1)
    assert np.array_equal(got[1], np.where(third, 11, 21) + 100 * rank + 10000 * third)
    assert np.array_equal(got[2], t // 8 * 8 + 7 + 4000)
    assert np.array_equal(got[3], t % 4 + 40 + 3200)


def test_reductions_and_scans() -> None:
    got = run(
        """
  auto tile = cg::tiled_partition<8>(block);
  o[t] = cg::reduce(tile, t, cg::plus<int>()) + 1000 * cg::reduce(tile, t, cg::less<int>());
  o[n + t] = cg::reduce(tile, 1 << t % 8, cg::bit_or<int>()) + 1000 * cg::reduce(tile, t ^ 5, cg::bit_xor<int>());
  o[2 * n + t] = cg::inclusive_scan(tile, t) + 1000 * cg::exclusive_scan(tile, 1);
  o[3 * n + t] = cg::inclusive_scan(tile, t ^ 3, cg::greater<int>());
  o[3 * n + t] += 1000 * cg::exclusive_scan(tile, t, cg::plus<int>());
  o[4 * n + t] = (int)cg::reduce(tile, (long long)t << 33, cg::plus<long long>());
  o[4 * n + t] += (int)cg::reduce(tile, t * 0.5, cg::plus<double>());
  if (t % 8 < 5) {
    auto five = cg::coalesced_threads();
    o[5 * n + t] = cg::reduce(five, t, cg::plus<int>()) + 10000 * five.thread_rank();
  }""",
        32,
        6,
    )
    t = np.arange(32)
    rows = t.reshape(4, 8)
    assert np.array_equal(got[0], rows.sum(1).repeat(8) + 1000 * (t // 8 * 8))
    assert np.array_equal(got[1], 255 + 1000 * np.bitwise_xor.reduce(rows ^ 5, axis=1).repeat(8))
    assert np.array_equal(got[2], rows.cumsum(1).ravel() + 1000 * (t % 8))
    largest = np.maximum.accumulate(rows ^ 3, axis=1).ravel()
    assert np.array_equal(got[3], largest + 1000 * (rows.cumsum(1) - rows).ravel())
    assert np.array_equal(got[4], rows.sum(1).repeat(8) // 2)
    some = t % 8 < 5
    active = t[some]
    assert np.array_equal(got[5][some], active.sum() + 10000 * np.arange(active.size))


def test_sums_of_floats_have_the_same_order_everywhere() -> None:
    got = run(
        """
  auto warp = cg::tiled_partition<32>(block);
  float x = 1.0f / (1 + t);
  o[t] = cg::reduce(warp, x, cg::plus<float>());
  o[n + t] = cg::inclusive_scan(warp, x, cg::plus<float>());""",
        32,
        2,
        "float",
    )
    x = np.float32(1) / np.arange(1, 33, dtype=np.float32)
    lanes = np.arange(32)
    total = x.copy()
    for partner in (16, 8, 4, 2, 1):
        total = total + total[lanes ^ partner]
    running = x.copy()
    for distance in (1, 2, 4, 8, 16):
        running = np.where(lanes >= distance, running + np.roll(running, distance), running)
    assert got[0].tolist() == total.tolist() and got[1].tolist() == running.tolist()


def test_values_of_any_size_and_one_thread_for_all() -> None:
    got = run(
        """
  auto warp = cg::tiled_partition<32>(block);
  triple mine = {t, 2.0 * t, t * 3};
  triple theirs = warp.shfl(mine, 7);
  o[t] = theirs.a + 100 * (int)theirs.b + 10000 * theirs.c;
  cg::invoke_one(warp, [&] { atomicAdd(o + n + t / 32, 5); });
  o[2 * n + t] = cg::invoke_one_broadcast(warp, [&] { return t / 32 + 40; });""",
        64,
        3,
        before="struct triple { int a; double b; int c; };",
    )
    assert set(got[0][:32]) == {7 + 1400 + 210000} and set(got[0][32:]) == {39 + 7800 + 1170000}
    assert got[1][:2].tolist() == [5, 5] and not got[1][2:].any()
    assert np.array_equal(got[2], np.arange(64) // 32 + 40)


def test_copies_to_shared_memory() -> None:
    source = (
        HEAD
        + """
__global__ void k(const int *in, int *o) {
  __shared__ int whole[100];
  __shared__ int part[40];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, whole, in, sizeof(int) * 100);
  cg::memcpy_async(block, part, 40, in + 60, 30);
  cg::wait(block);
  for (int i = threadIdx.x; i < 100; i += blockDim.x) o[i] = whole[99 - i] + (i < 30 ? 1000 * part[i] : 0);
}"""
    )
    values = np.arange(100, dtype=np.int32) * 7
    out = gp.from_numpy(np.zeros(100, np.int32))
    gp.jit(source, func="k")[1, 32](gp.from_numpy(values), out)
    expected = values[::-1].copy()
    expected[:30] += 1000 * values[60:90]
    assert np.array_equal(out.to_numpy(), expected)


def bound(source: str, grid: int, block: int, shared: int, flags: int, cluster: int = 1) -> native.BoundKernel:
    kernel = gp.jit(source, func="k")
    return kernel._kernel.bind((grid, 1, 1), (block, 1, 1), shared, None, flags, (cluster, 1, 1))


def test_a_grid_that_meets() -> None:
    source = (
        HEAD
        + """
__global__ void k(const float *x, float *parts, float *o, int n) {
  extern __shared__ float values[];
  cg::grid_group grid = cg::this_grid();
  float sum = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
  values[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = values[0];
  grid.sync();
  if (grid.thread_rank() == 0) {
    float all = 0;
    for (int block = 0; block < gridDim.x; ++block) all += parts[block];
    *o = all + (grid.is_valid() ? 0.0f : 1e9f);
  }
}"""
    )
    x = np.ones(10007, np.float32)
    out, parts = gp.from_numpy(np.zeros(1, np.float32)), gp.from_numpy(np.zeros(8, np.float32))
    bound(source, 8, 128, 512, COOPERATIVE)(gp.from_numpy(x), parts, out, x.size)
    assert out.to_numpy().tolist() == [10007]


def test_a_cluster_that_shares_its_memory() -> None:
    source = (
        HEAD
        + """
__global__ void k(int *o) {
  __shared__ int mine[32];
  auto cluster = cg::this_cluster();
  mine[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
  cluster.sync();
  int next = (cluster.block_rank() + 1) % cluster.num_blocks();
  o[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(mine, next)[31 - threadIdx.x];
  cluster.sync();
}"""
    )
    out = gp.from_numpy(np.zeros(8 * 32, np.int32))
    bound(source, 8, 32, 0, CLUSTER, 4)(out)
    block, t = np.divmod(np.arange(256), 32)
    assert np.array_equal(out.to_numpy(), (block // 4 * 4 + (block + 1) % 4) * 100 + 31 - t)
