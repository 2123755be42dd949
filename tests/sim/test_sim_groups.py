"""Blocks that work together on the simulated device: cooperative launches, clusters, and cooperative groups."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from sim_table import (
    FAILED,
    INVALID_VALUE,
    Array,
    Module,
    Table,
    start,
)

from pygpukit._core import native

COOPERATIVE, CLUSTER = 1, 2
TOO_LARGE, INVALID_CLUSTER = 720, 912
HEAD = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"


@pytest.fixture(scope="module")
def table() -> Table:
    return Table()


@pytest.fixture
def ints(table: Table) -> Array:
    return table.array(np.zeros(4096, np.int32))


# ---- cooperative launches


NEIGHBOURS = (
    HEAD
    + """
__global__ void k(int *o, int *scratch, int rounds) {
  cg::grid_group grid = cg::this_grid();
  __shared__ int mine[64];
  extern __shared__ int more[];
  int i = grid.thread_rank(), n = grid.size();
  int *kept = &mine[threadIdx.x];  // a pointer to shared memory stays valid over grid.sync()
  *kept = i;
  more[threadIdx.x] = 2 * i;
  for (int round = 0; round < rounds; ++round) {
    scratch[i] = *kept;
    grid.sync();
    int left = scratch[(i + n - 1) % n];
    grid.sync();
    *kept = left + 1;
  }
  o[i] = *kept + 10000 * (more[threadIdx.x] == 2 * i) + 100000 * grid.is_valid();
}"""
)


@pytest.mark.parametrize("block", [1, 33, 64])
def test_a_grid_meets_at_its_barrier(table: Table, ints: Array, block: int) -> None:
    blocks, rounds = 12, 5
    n = blocks * block
    scratch = table.array(np.zeros(n, np.int32))
    Module(table, NEIGHBOURS).run("k", (3, 4), block, ints, scratch, rounds, shared=256, flags=COOPERATIVE)
    expected = (np.arange(n) - rounds) % n + rounds + 110000
    assert ints.read()[:n].tolist() == expected.tolist()


def test_threads_that_left_are_not_waited_for_by_the_grid(table: Table, ints: Array) -> None:
    source = (
        HEAD
        + """
__global__ void k(int *o) {
  if (threadIdx.x >= 40 - blockIdx.x) return;
  atomicAdd(o, 1);
  cg::this_grid().sync();
  o[1 + blockIdx.x * 40 + threadIdx.x] = *o + __syncthreads_count(1) * 1000;
}"""
    )
    Module(table, source).run("k", 4, 64, ints, flags=COOPERATIVE)
    got = ints.read()
    for block in range(4):
        left = 40 - block
        assert set(got[1 + block * 40 : 1 + block * 40 + left]) == {40 + 39 + 38 + 37 + 1000 * left}


def test_blocks_of_a_cooperative_launch_may_wait_for_each_other_in_loops(table: Table, ints: Array) -> None:
    source = """
__global__ void k(int *o) {  // every thread of the first block waits for the last block
  if (blockIdx.x + 1 == gridDim.x) { if (threadIdx.x == 7) atomicExch(o, 5); }
  else while (atomicAdd(o, 0) == 0) {}
  o[1 + blockIdx.x] = *(volatile int *)o;
}"""
    Module(table, source).run("k", 6, 32, ints, flags=COOPERATIVE)
    assert set(ints.read()[1:7]) == {5}


def test_warp_functions_between_grid_barriers(table: Table, ints: Array) -> None:
    source = (
        HEAD
        + """
__device__ int total;
__global__ void k(int *o) {
  int sum = threadIdx.x;
  for (int delta = 16; delta; delta /= 2) sum += __shfl_xor_sync(~0u, sum, delta);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, sum);
  cg::this_grid().sync();
  o[blockIdx.x * blockDim.x + threadIdx.x] = total + (int)__ballot_sync(~0u, threadIdx.x & 1);
}"""
    )
    Module(table, source).run("k", 8, 96, ints, flags=COOPERATIVE)
    assert set(ints.read()[: 8 * 96].view(np.uint32)) == {8 * sum(range(96)) + 0xAAAAAAAA}


def test_a_cooperative_launch_must_fit_on_the_device(table: Table, ints: Array) -> None:
    module = Module(table, HEAD + "__global__ void k(int *o) { cg::this_grid().sync(); atomicAdd(o, 1); }")
    blocks = ctypes.c_int32()
    table.ok("function_occupancy", module.function("k"), 1024, 0, ctypes.byref(blocks))
    sms = native.device_info(0)["multiprocessor_count"]
    most = blocks.value * sms
    module.run("k", most, 1024, ints, flags=COOPERATIVE)
    assert ints.read()[0] == most * 1024
    assert module.launch("k", most + 1, 1024, ints, flags=COOPERATIVE) == TOO_LARGE
    text = table.text(TOO_LARGE)
    assert f"{most + 1} blocks" in text and f"at most {most}" in text, text
    assert table.error_name(TOO_LARGE) == b"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"


def test_a_large_cooperative_launch_gives_its_stacks_back(table: Table, ints: Array) -> None:
    def stacks() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") >> 20

    module = Module(table, HEAD + "__global__ void k(int *o) { cg::this_grid().sync(); atomicAdd(o, 1); }")
    module.run("k", 4, 1024, ints, flags=COOPERATIVE)
    before = stacks()
    module.run("k", 16, 1024, ints, flags=COOPERATIVE)
    assert stacks() - before < 1000  # MiB of addresses; 12288 stacks would take 3888


def test_grid_barriers_without_a_cooperative_launch_say_what_to_do(table: Table, ints: Array) -> None:
    source = HEAD + "__global__ void k(int *o) {\n  o[0] = cg::this_grid().is_valid();\n  cg::this_grid().sync();\n}"
    status, text = Module(table, source).fault("k", 2, 64, ints)
    assert status == FAILED and "grid.sync() at cell:5" in text and "cooperative=True" in text, text
    assert ints.read()[0] == 0


def test_blocks_that_miss_the_grid_barrier_are_told(table: Table, ints: Array) -> None:
    source = HEAD + "__global__ void k(int *o) {\n  if (blockIdx.x != 2)\n    cg::this_grid().sync();\n}"
    status, text = Module(table, source).fault("k", 5, 64, ints, flags=COOPERATIVE)
    assert status == FAILED and "4 blocks waiting in grid.sync() at cell:5: 0-1, 3-4" in text, text
    assert "1 blocks exited: 2" in text
    mixed = (
        HEAD + "__global__ void k(int *o) {\n  if (threadIdx.x < 8)\n    cg::this_grid().sync();\n  __syncthreads();\n}"
    )
    status, text = Module(table, mixed).fault("k", 2, 32, ints, flags=COOPERATIVE)
    assert "24 waiting in __syncthreads() at cell:6: 8-31; 8 waiting in grid.sync() at cell:5: 0-7" in text, text
    Module(table, NEIGHBOURS).run("k", 4, 64, ints, ints, 0, shared=256, flags=COOPERATIVE)  # the device goes on


def test_faults_and_endless_loops_of_cooperative_launches() -> None:
    text = start(
        f"""
t = Table()
o = t.array(np.zeros(64, np.int32))
head = {HEAD!r}
for body in ("for (;;) cg::this_grid().sync();", "while (atomicAdd(o, 0) == 0) ;",
             "cg::this_grid().sync(); for (;;) ;"):
    module = Module(t, head + "__global__ void k(int *o) {{\\n" + body + "\\n}}")
    begin = time.perf_counter()
    status, text = module.fault("k", 3, 64, o, flags=1)
    assert status == TIMEOUT and "longer than 0.3 s" in text, text
    assert time.perf_counter() - begin >= 0.3
body = "cg::this_grid().sync(); if (blockIdx.x == 1 && threadIdx.x == 5) o[1LL << 40] = 1;"
status, text = Module(t, head + "__global__ void k(int *o) {{\\n" + body + "\\n}}").fault("k", 3, 64, o, flags=1)
assert status == ILLEGAL_ADDRESS and "block (1,0,0), thread (5,0,0)" in text and "cell:4" in text, text
""",
        PYGPUKIT_SIM_TIMEOUT_S="0.3",
    )
    assert text == ""


# ---- clusters


RING = (
    HEAD
    + """
__global__ void k(int *o) {
  cg::cluster_group cluster = cg::this_cluster();
  __shared__ int slot[32];
  extern __shared__ int more[];
  slot[threadIdx.x] = 100 * cluster.block_rank() + threadIdx.x;
  more[threadIdx.x] = -slot[threadIdx.x];
  cluster.sync();
  int next = (cluster.block_rank() + 1) % cluster.num_blocks();
  int *theirs = cluster.map_shared_rank(slot, next);
  int got = theirs[threadIdx.x] + (cluster.map_shared_rank(more, next)[threadIdx.x] == -theirs[threadIdx.x]) * 10000;
  int rank = cluster.query_shared_rank(theirs), mine = cluster.query_shared_rank(slot);
  got += 100000 * (rank == next && mine == cluster.block_rank());
  cluster.sync();
  atomicAdd(theirs, 1);
  cluster.sync();
  int block = blockIdx.y * gridDim.x + blockIdx.x;
  o[block * 32 + threadIdx.x] = got + 1000000 * (threadIdx.x == 0 ? slot[0] - 100 * cluster.block_rank() : 32);
}"""
)


def ring(grid: tuple[int, int], cluster: tuple[int, int]) -> np.ndarray:
    y, x, t = np.meshgrid(range(grid[1]), range(grid[0]), range(32), indexing="ij")
    rank = x % cluster[0] + cluster[0] * (y % cluster[1])
    return ((rank + 1) % (cluster[0] * cluster[1]) * 100 + t + 32110000).ravel()


@pytest.mark.parametrize("cluster", [(1, 1), (4, 1), (2, 3), (8, 1)])
def test_blocks_of_a_cluster_share_their_memory(table: Table, ints: Array, cluster: tuple[int, int]) -> None:
    Module(table, RING).run("k", (8, 6), 32, ints, shared=128, flags=CLUSTER, cluster=cluster)
    assert ints.read()[: 48 * 32].tolist() == ring((8, 6), cluster).tolist()


def test_clusters_that_the_source_asks_for(table: Table, ints: Array) -> None:
    source = "#define WIDE 2\n" + RING.replace("void k", "void __cluster_dims__(WIDE, 1 + 1) k")
    module = Module(table, source)
    module.run("k", (8, 6), 32, ints, shared=128)
    assert ints.read()[: 48 * 32].tolist() == ring((8, 6), (2, 2)).tolist()
    assert module.launch("k", (8, 6), 32, ints, shared=128, flags=CLUSTER, cluster=(4, 1)) == INVALID_VALUE
    assert "__cluster_dims__" in table.text(INVALID_VALUE)


def test_cluster_limits(table: Table, ints: Array) -> None:
    module = Module(table, RING)
    assert module.launch("k", (6, 1), 32, ints, shared=128, flags=CLUSTER, cluster=(4, 1)) == INVALID_VALUE
    assert "(6,1,1)" in table.text(INVALID_VALUE) and "(4,1,1)" in table.text(INVALID_VALUE)
    assert module.launch("k", (34, 1), 32, ints, shared=128, flags=CLUSTER, cluster=(17, 1)) == INVALID_CLUSTER
    assert table.error_name(INVALID_CLUSTER) == b"CUDA_ERROR_INVALID_CLUSTER_SIZE"
    bad = HEAD + "__global__ void k(int *o) {\n  *cg::this_cluster().map_shared_rank(o, 1) = 1;\n}"
    status, text = Module(table, bad).fault("k", 2, 32, ints, flags=CLUSTER, cluster=(2,))
    assert status == FAILED and "map_shared_rank()" in text and "cell:4" in text


def test_a_cooperative_launch_of_clusters(table: Table, ints: Array) -> None:
    source = (
        HEAD
        + """
__device__ int sums[4];
__global__ void k(int *o) {
  __shared__ int mine;
  auto cluster = cg::this_cluster();
  auto grid = cg::this_grid();
  if (threadIdx.x == 0) mine = blockIdx.x;
  cluster.sync();
  if (threadIdx.x == 0 && cluster.block_rank() == 0)
    for (int rank = 0; rank < cluster.num_blocks(); ++rank)
      sums[grid.cluster_rank()] += *cluster.map_shared_rank(&mine, rank);
  grid.sync();
  o[grid.thread_rank()] = sums[0] + 100 * sums[3] + 10000 * grid.num_clusters();
}"""
    )
    Module(table, source).run("k", 12, 8, ints, flags=COOPERATIVE | CLUSTER, cluster=(3,))
    assert set(ints.read()[:96]) == {3 + 100 * 30 + 10000 * 4}
