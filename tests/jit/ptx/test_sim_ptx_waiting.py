"""Inline PTX on the simulated device: barriers, mbarriers and copies, plain and checked."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.errors import GPUError, KernelCheckError
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.compile.nvrtc import get_nvrtc_version


def launched(source: str, grid: int, block: int, *arguments: object, check: bool, valid: bool = True) -> None:
    """Runs it; NVRTC, where it is installed, must take it, too."""
    if valid and get_nvrtc_version() is not None:
        compile_source(source, arch="sm_90a")
    gp.jit(source, func="k", check=check)[grid, block](*arguments)
    gp.synchronize()


@pytest.mark.parametrize("check", [False, True])
def test_barriers_of_a_block_and_of_a_warp(check: bool) -> None:
    source = """extern "C" __global__ void k(const unsigned *in, unsigned *out) {
  __shared__ unsigned tile[96];
  const int i = threadIdx.x;
  tile[i] = in[i];
  asm volatile("bar.sync 0;" ::: "memory");
  unsigned x = tile[95 - i];
  asm volatile("barrier.sync 1, %0;" :: "r"(96) : "memory");
  tile[i] = x + 1;
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
  x = tile[i ^ 1];
  unsigned count, all;
  asm volatile("{ .reg .pred p, q; setp.gt.u32 p, %2, 50; bar.red.popc.u32 %0, 0, p;"
               "  bar.red.and.pred q, 0, !p; selp.u32 %1, 1, 0, q; }" : "=r"(count), "=r"(all) : "r"(x));
  out[i] = x + 1000 * count + 100000 * all;
}"""
    x = np.random.default_rng(1).integers(0, 100, 96, dtype="u4")
    out = gp.from_numpy(np.zeros(96, "u4"))
    launched(source, 1, 96, gp.from_numpy(x), out, check=check)
    swapped = (x[::-1] + 1).reshape(-1, 2)[:, ::-1].ravel()
    assert np.array_equal(out.to_numpy(), swapped + 1000 * (swapped > 50).sum())


HAND_OVER = """extern "C" __global__ void k(const unsigned *in, unsigned *out, int rounds) {
  __shared__ unsigned tile[64];
  const int i = threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    if (i < 64) {
      tile[i] = in[round * 64 + i];
      asm volatile("bar.sync 3, 64;" ::: "memory");
      const unsigned x = tile[63 - i];
      asm volatile("barrier.sync 3, 64;" ::: "memory");
      tile[i] = x + 1;
      asm volatile("bar.arrive %0, %1;" :: "r"(1), "n"(128) : "memory");
      asm volatile("bar.sync 2, 128;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      out[round * 64 + i - 64] = tile[i - 64];
      asm volatile("bar.arrive 2, 128;" ::: "memory");
    }
  }
}"""


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("blocks", [1, 3])
def test_barriers_of_a_part_of_the_block(check: bool, blocks: int) -> None:
    x = np.random.default_rng().integers(0, 1 << 30, (5, 64), dtype="u4")
    out = gp.from_numpy(np.zeros((5, 64), "u4"))
    source = (
        HAND_OVER
        if blocks == 1
        else HAND_OVER.replace("  const int i", "  if (blockIdx.x != 2) return;\n  const int i")
    )
    launched(source, blocks, 128, gp.from_numpy(x), out, 5, check=check)
    assert np.array_equal(out.to_numpy(), x[:, ::-1] + 1)


def test_a_missing_arrival_at_a_part_is_a_race() -> None:
    for old in ('asm volatile("bar.arrive 2, 128;" ::: "memory");', 'asm volatile("bar.sync 1, 128;" ::: "memory");'):
        assert old in HAND_OVER
        source = HAND_OVER.replace(old, "").replace('asm volatile("bar.sync 2, 128;" ::: "memory");', "")
        source = source.replace('asm volatile("bar.arrive 2, 128;" ::: "memory");', "")
        with pytest.raises(KernelCheckError, match="race"):
            launched(source, 1, 128, gp.from_numpy(np.zeros((2, 64), "u4")), gp.from_numpy(np.zeros((2, 64), "u4")), 2,
                     check=True)  # fmt: skip


@pytest.mark.parametrize(
    ("number", "threads", "told"),
    [(1, 40, "of whole warps"), (1, 160, "of whole warps"), (16, 64, "a barrier's number is 0 to 15")],
)
def test_a_barrier_that_no_part_of_a_block_has(number: int, threads: int, told: str) -> None:
    source = """extern "C" __global__ void k(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" :: "r"(number), "r"(threads));
}"""
    with pytest.raises(GPUError, match=told):
        launched(source, 1, 96, number, threads, check=False)


def test_one_barrier_with_two_counts_is_told() -> None:
    source = 'extern "C" __global__ void k() { asm volatile("bar.arrive 1, %0;" :: "r"(threadIdx.x < 32 ? 64 : 96)); }'
    with pytest.raises(GPUError, match="two numbers of threads"):
        launched(source, 1, 96, check=False)


COPY = """extern "C" __global__ void k(const float *in, float *out, int n) {
  __shared__ __align__(16) float tile[4 * 64];
  const int i = threadIdx.x;
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile + 4 * i);
  const int left = n - 4 * i, given = left <= 0 ? 0 : left >= 4 ? 16 : 4 * left;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(in + 4 * i), "r"(given));
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group %0;" :: "n"(0) : "memory");
  BARRIER
  for (int j = 0; j < 4; ++j) out[4 * i + j] = tile[255 - 4 * i - j];
}"""


@pytest.mark.parametrize("check", [False, True])
def test_copies_fill_up_with_zeros(check: bool) -> None:
    x = np.random.default_rng(2).standard_normal(203).astype("f4")
    out = gp.from_numpy(np.full(256, np.nan, "f4"))
    source = COPY.replace("BARRIER", 'asm volatile("bar.sync 0;" ::: "memory");')
    launched(source, 1, 64, gp.from_numpy(x), out, 203, check=check)
    assert np.array_equal(out.to_numpy()[::-1], np.pad(x, (0, 53)))


def test_a_copy_that_nobody_waits_for_is_a_race_and_one_too_long_is_out_of_bounds() -> None:
    x, out = gp.from_numpy(np.zeros(203, "f4")), gp.from_numpy(np.zeros(256, "f4"))
    with pytest.raises(KernelCheckError):
        launched(COPY.replace("BARRIER", ""), 1, 64, x, out, 203, check=True)
    with pytest.raises(KernelCheckError, match=r"out of bounds.*:6"):
        launched(COPY.replace("BARRIER", "__syncthreads();"), 1, 64, x, out, 207, check=True)


HANDED = """extern "C" __global__ void k(const unsigned *in, unsigned *out, int tiles) {
  __shared__ unsigned tile[32];
  __shared__ __align__(8) unsigned long long full, empty;
  const int i = threadIdx.x % 32;
  const bool fills = threadIdx.x < 32;
  const unsigned f = (unsigned)__cvta_generic_to_shared(&full), e = (unsigned)__cvta_generic_to_shared(&empty);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(f), "r"(32) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(e) : "memory");
  }
  BARRIER
  for (int t = 0; t < tiles; ++t) {
    const unsigned at = fills ? e : f, parity = fills ? (t & 1) ^ 1 : t & 1;
    asm volatile("{ .reg .pred done;\\n"
                 "WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\\n"
                 "@done bra GO;\\n bra WAIT;\\n GO: }" :: "r"(at), "r"(parity) : "memory");
    if (fills) tile[i] = in[32 * t + i];
    else out[32 * t + i] = tile[31 - i];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(fills ? f : e) : "memory");
  }
}"""


@pytest.mark.parametrize("check", [False, True])
def test_an_mbarrier_hands_tiles_over(check: bool) -> None:
    x = np.random.default_rng(3).integers(0, 1 << 32, (7, 32), dtype="u4")
    out = gp.from_numpy(np.zeros((7, 32), "u4"))
    launched(HANDED.replace("BARRIER", "__syncthreads();"), 1, 64, gp.from_numpy(x), out, 7, check=check)
    assert np.array_equal(out.to_numpy(), x[:, ::-1])


@pytest.mark.parametrize("order", ["", "if (threadIdx.x < 32) __syncwarp();", "__threadfence();"])
def test_an_mbarrier_that_others_do_not_know_of_is_a_race(order: str) -> None:
    x, out = (gp.from_numpy(np.zeros((3, 32), "u4")) for _ in range(2))
    with pytest.raises(gp.GPUError, match=r"race: .*(empty|full)\[0\].*nothing orders the two"):
        launched(HANDED.replace("BARRIER", order), 1, 64, x, out, 3, check=True)


def test_an_mbarrier_taken_away_too_early_is_a_race() -> None:
    source = """extern "C" __global__ void k(unsigned *out) {
  __shared__ __align__(8) unsigned long long full;
  const unsigned f = (unsigned)__cvta_generic_to_shared(&full);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" :: "r"(f) : "memory");
  __syncthreads();
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(f) : "memory");
  BARRIER
  if (threadIdx.x == 40) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(f) : "memory");
    full = 7;
  }
  __syncthreads();
  out[threadIdx.x] = (unsigned)full;
}"""
    out = gp.from_numpy(np.zeros(64, "u4"))
    launched(source.replace("BARRIER", "__syncthreads();"), 1, 64, out, check=True)
    assert (out.to_numpy() == 7).all()
    with pytest.raises(gp.GPUError, match=r"race: .*full\[0\].*nothing orders the two"):
        launched(source.replace("BARRIER", ""), 1, 64, out, check=True)


KNOWN = """#include <cuda/barrier>
extern "C" __global__ void k(unsigned *out) {
  __shared__ TYPE made;
  if (threadIdx.x == 0) MAKE;
  ORDER
  USE
  out[threadIdx.x] = 1;
}"""


@pytest.mark.parametrize(
    ("type_", "make", "use"),
    [
        ("cuda::barrier<cuda::thread_scope_block>", "init(&made, 64)", "made.arrive_and_wait();"),
        ("long long", "new (&made) cuda::latch<cuda::thread_scope_block>(64)",
         "((cuda::latch<cuda::thread_scope_block> &)made).arrive_and_wait();"),
        ("long long", "new (&made) cuda::counting_semaphore<cuda::thread_scope_block>(64)",
         "((cuda::counting_semaphore<cuda::thread_scope_block> &)made).acquire();"),
    ],
)  # fmt: skip
def test_what_waits_must_be_known(type_: str, make: str, use: str) -> None:
    out = gp.from_numpy(np.zeros(64, "u4"))
    source = KNOWN.replace("TYPE", type_).replace("MAKE", make).replace("USE", use)
    gp.jit(source.replace("ORDER", "__syncthreads();"), func="k", check=True)[1, 64](out)
    assert (out.to_numpy() == 1).all()
    with pytest.raises(gp.GPUError, match=r"race: .*nothing orders the two"):
        gp.jit(source.replace("ORDER", ""), func="k", check=True)[1, 64](out)
        gp.synchronize()


@pytest.mark.parametrize("check", [False, True])
def test_bulk_copies_count_their_bytes(check: bool) -> None:
    source = """extern "C" __global__ void k(const unsigned *in, unsigned *out) {
  __shared__ __align__(128) unsigned tile[64];
  __shared__ __align__(8) unsigned long long full;
  const unsigned f = (unsigned)__cvta_generic_to_shared(&full), to = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(f) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(f), "r"(256) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(in), "r"(256), "r"(f) : "memory");
  }
  __syncthreads();
  unsigned over = 0;
  while (!over)
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(over) : "r"(f) : "memory");
  const unsigned x = tile[63 - threadIdx.x];
  __syncthreads();
  tile[threadIdx.x] = x;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(out), "r"(to) : "memory");
    asm volatile("cp.async.bulk.commit_group;\\n cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}"""
    x = np.random.default_rng(4).integers(0, 1 << 32, 64, dtype="u4")
    out = gp.from_numpy(np.zeros(64, "u4"))
    launched(source, 1, 64, gp.from_numpy(x), out, check=check)
    assert np.array_equal(out.to_numpy(), x[::-1])


def test_what_has_nothing_to_do_and_what_ends_a_kernel() -> None:
    source = """extern "C" __global__ void k(unsigned *out, int n) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("fence.acq_rel.gpu; membar.sys; fence.sc.cta;" ::: "memory");
  asm volatile("nanosleep.u32 20;");
  if (n > 5) asm volatile("trap;");
  out[threadIdx.x] = n;
}"""
    out = gp.from_numpy(np.zeros(8, "u4"))
    launched(source, 1, 8, out, 5, check=False)
    assert (out.to_numpy() == 5).all()
    with pytest.raises(GPUError):
        launched(source, 1, 8, out, 6, check=False)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("block", [160, 150])
def test_votes_of_a_part_of_a_block(block: int, check: bool) -> None:
    """Two warps, then three, vote again and again, while others of the block come and go at barriers of their own."""
    source = """extern "C" __global__ void k(const unsigned *in, unsigned *out) {
  const unsigned i = threadIdx.x, warp = i / 32, number = warp < 2 ? 1 : 5, threads = warp < 2 ? 64 : 96;
  for (int t = 0; t < 3; ++t) {
    const unsigned x = in[t * blockDim.x + i];
    unsigned count, all, any;
    if (warp == 0 && t == 1) asm volatile("bar.sync 3, 32;" ::: "memory");
    asm volatile("{ .reg .pred p, q; setp.gt.u32 p, %3, 50; bar.red.popc.u32 %0, %4, %5, p;"
                 " bar.red.and.pred q, %4, %5, p; selp.u32 %1, 1, 0, q;"
                 " barrier.cta.red.or.pred q, %4, %5, !p; selp.u32 %2, 1, 0, q; }"
                 : "=r"(count), "=r"(all), "=r"(any) : "r"(x), "r"(number), "r"(threads) : "memory");
    out[t * blockDim.x + i] = count | all << 16 | any << 17;
  }
}"""
    rng = np.random.default_rng()
    x = rng.integers(0, 100, (3, block)).astype("u4")
    x[1, :64], x[2, 64:] = 60, 40
    out = gp.from_numpy(np.zeros_like(x))
    launched(source, 1, block, gp.from_numpy(x), out, check=check)
    for row, found in zip(x > 50, out.to_numpy(), strict=True):
        for part in (slice(0, 64), slice(64, block)):
            votes = row[part]
            want = int(votes.sum()) | int(votes.all()) << 16 | int(not votes.all()) << 17
            assert (found[part] == want).all()
