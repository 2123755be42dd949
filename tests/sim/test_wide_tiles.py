"""Tiles of more threads than a warp has: their barrier, their exchange, and checked mode's view of them."""

from __future__ import annotations

import numpy as np
import pytest
from check_run import run

import pygpukit as gp
from pygpukit.core.errors import CompileError
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.nvrtc import get_nvrtc_version

SOURCE = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void k(const int *in, int *out) {
  __shared__ cg::block_tile_memory<512> memory;
  cg::thread_block block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<SIZE>(block);
  const int t = block.thread_rank(), n = block.size();
  out[t] = cg::reduce(tile, in[t], cg::plus<int>());
  out[n + t] = cg::inclusive_scan(tile, in[t], cg::plus<int>());
  out[2 * n + t] = cg::exclusive_scan(tile, in[t]);
  out[3 * n + t] = tile.shfl(in[t], SIZE - 3);
  out[4 * n + t] = 2 * tile.any(in[t] > 990) + tile.all(in[t] > -990);
  auto warp = cg::tiled_partition<32>(tile);
  out[5 * n + t] = 1000 * tile.meta_group_rank() + 100 * tile.meta_group_size() + 10 * warp.meta_group_rank() +
                   warp.meta_group_size();
  cg::thread_block_tile<SIZE> same = tile;
  out[6 * n + t] = same.thread_rank();
}"""


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("size", "threads"), [(64, 64), (64, 256), (128, 512), (256, 512), (512, 512)])
def test_threads_of_a_wide_tile_reduce_scan_and_exchange(size: int, threads: int, check: bool) -> None:
    values = np.random.default_rng().integers(-999, 999, threads).astype("int32")
    out = gp.from_numpy(np.full((7, threads), -(2**31), "int32"))
    gp.jit(SOURCE, "k", defines={"SIZE": size}, check=check)[1, threads](gp.from_numpy(values), out)
    tiles, ranks = values.reshape(-1, size), np.arange(threads)
    sums = tiles.cumsum(1)
    votes = 2 * (tiles > 990).any(1) + (tiles > -990).all(1)
    places = 1000 * (ranks // size) + 100 * (threads // size) + 10 * (ranks % size // 32) + size // 32
    expected = [
        np.repeat(tiles.sum(1), size), sums, sums - tiles, np.repeat(tiles[:, size - 3], size), np.repeat(votes, size),
        places, ranks % size,
    ]  # fmt: skip
    for row, (have, want) in enumerate(zip(out.to_numpy(), expected, strict=True)):
        assert have.tolist() == np.ravel(want).tolist(), row


TURNS = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int *in, int *out, int rounds) {
  __shared__ int values[256];
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  const int t = threadIdx.x, first = t / 64 * 64;
  if (tile.meta_group_rank() == 3) return;
  for (int i = 0; i < rounds * (1 + t / 64); ++i) {  // tiles do not wait for each other
    values[t] = in[t] + i;
    BARRIER
    out[t] = values[first + 63 - t % 64];
    tile.sync();
  }
}"""


def test_a_wide_tiles_barrier_waits_for_its_own_threads_and_orders_what_they_do() -> None:
    values = np.random.default_rng().integers(-999, 999, 256).astype("int32")
    out = gp.from_numpy(np.full(256, 7, "int32"))
    assert run(TURNS.replace("BARRIER", "tile.sync();"), 1, 256, gp.from_numpy(values), out, 3) is None
    expected = values.reshape(4, 64)[:, ::-1] + np.array([[2], [5], [8], [0]])
    expected[3] = 7
    assert out.to_numpy().tolist() == expected.ravel().tolist()
    found = run(TURNS.replace("BARRIER", ""), 1, 256, gp.from_numpy(values), out, 3)
    assert found is not None and (found.kind, found.line) in (("race", 11), ("uninitialised shared memory", 11))


def test_a_size_that_no_tile_has_is_an_error() -> None:
    with pytest.raises(CompileError, match="a tile has 1, 2, 4"):
        compile_source(SOURCE, defines={"SIZE": 2048}, arch="sim")
    with pytest.raises(CompileError, match="power of two"):
        compile_source(SOURCE, defines={"SIZE": 24}, arch="sim")


@pytest.mark.skipif(get_nvrtc_version() is None, reason="NVRTC is not installed (extra cuda13)")
def test_nvrtc_takes_the_same_source() -> None:
    compile_source(SOURCE, defines={"SIZE": 64}, arch="sm_90a")
    compile_source(TURNS.replace("BARRIER", "tile.sync();"), arch="sm_80")
