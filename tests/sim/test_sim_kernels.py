"""CUDA kernels on the simulated device: semantics, faults, limits, and what a fault or an interrupt leaves behind."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from sim_kernels import check_all
from sim_table import (
    INVALID_IMAGE,
    INVALID_VALUE,
    NOT_FOUND,
    OUT_OF_RESOURCES,
    Array,
    FunctionInfo,
    Module,
    Table,
    start,
)

from pygpukit._core import native


@pytest.fixture(scope="module")
def table() -> Table:
    return Table()


@pytest.fixture
def ints(table: Table) -> Array:
    return table.array(np.zeros(1024, np.int32))


def run(
    table: Table, body: str, block: int, out: Array, *arguments: object, grid: int = 1, shared: int = 0
) -> np.ndarray:
    """Runs `__global__ void k(int *o ...)` with this body; what it wrote."""
    Module(table, "__global__ void k(int *o) {\n  int t = threadIdx.x;\n" + body + "\n}").run(
        "k", grid, block, out, *arguments, shared=shared
    )
    return out.read()[:block]


# ---- whole kernels


def test_samples_agree_with_numpy(table: Table) -> None:
    check_all(table)


@pytest.mark.parametrize("workers", [1, 8])
def test_samples_agree_with_any_number_of_workers(workers: int) -> None:
    start("from sim_kernels import check_all\ncheck_all(Table())", PYGPUKIT_SIM=f"sms=8,workers={workers}")


def test_concurrent_launches_on_streams(table: Table) -> None:
    module = Module(table, "__global__ void k(int *o, int n) { for (int i = 0; i < n; ++i) atomicAdd(o + i % 7, 1); }")
    streams = []
    for priority in (0, -1, -5, 0):
        handle = ctypes.c_uint64()
        table.ok("stream_create", priority, ctypes.byref(handle))
        streams.append(handle.value)
    outs = [table.array(np.zeros(7, np.int32)) for _ in streams]
    for _ in range(5):
        for stream, out in zip(streams, outs, strict=True):
            assert module.launch("k", 16, 64, out, 70, stream=stream) == 0
    for stream, out in zip(streams, outs, strict=True):
        table.ok("stream_wait", stream)
        assert out.read().tolist() == [5 * 16 * 64 * 10] * 7
        table.ok("stream_destroy", stream)


def test_an_urgent_stream_goes_first() -> None:
    start(
        """
t = Table()
slow = Module(t, "__global__ void k(int *o) { for (int i = 0; i < 300000; ++i) ((volatile int *)o)[1] = i; }")
quick = Module(t, "__global__ void k(int *o) { o[0] = 1; }")
o = t.array(np.zeros(2, np.int32))
low, high = t.get("stream_create", 0), t.get("stream_create", -5)
assert slow.launch("k", 1_000_000, 1, o, stream=low) == 0  # for minutes
assert quick.launch("k", 1, 1, o, stream=high) == 0
t.wait(high)
assert t.stream_query(low) == NOT_READY
from pygpukit._core import native
native.sim_cancel()
t.stream_wait(low)
native.sim_clear_fault()
""",
        PYGPUKIT_SIM="workers=1",
    )


# ---- barriers and warps


def test_counting_barriers_count_threads_that_have_not_left(table: Table, ints: Array) -> None:
    body = """
  if (t >= 50) return;
  int odd = __syncthreads_count(t % 2), all = __syncthreads_and(t < 50), any = __syncthreads_or(t == 49);
  o[t] = odd + 100 * (all != 0) + 1000 * (any != 0) + 10000 * __syncthreads_or(t == 50);"""
    assert set(run(table, body, 64, ints)[:50]) == {1125}


@pytest.mark.parametrize("waits", ["false", "t == 0", "t % 3 == 1", "threadIdx.y == 1", "true"])
def test_rows_go_on_whichever_threads_wait(table: Table, waits: str) -> None:
    """Every thread of every row runs once and keeps its place, where none, some or all of its block wait."""
    source = """__global__ void k(int *o) {
      int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      if (WAITS) __syncthreads();
      int place = threadIdx.x + 16 * threadIdx.y + 256 * threadIdx.z;
      o[blockIdx.x * 64 + t] += 1 + 2 * place;
    }""".replace("WAITS", waits)
    module = Module(table, source)
    for block in ((1, 1, 1), (7, 1, 1), (1, 5, 3), (5, 3, 4), (3, 1, 9)):
        ints = table.array(np.zeros(128, np.int32))
        module.run("k", 2, block, ints)
        z, y, x = np.indices(block[::-1]).reshape(3, -1)
        expected = np.zeros((2, 64), np.int32)
        expected[:, : x.size] = 1 + 2 * (x + 16 * y + 256 * z)
        np.testing.assert_array_equal(ints.read(), expected.ravel())


def test_masks_of_half_warps_in_different_branches(table: Table, ints: Array) -> None:
    body = """
  if (t < 16) o[t] = __shfl_xor_sync(0x0000ffffu, t, 1);
  else o[t] = __shfl_xor_sync(0xffff0000u, t * 10, 2);"""
    t = np.arange(32)
    assert np.array_equal(run(table, body, 32, ints), np.where(t < 16, t ^ 1, (t ^ 2) * 10))


def test_shuffles_stay_in_their_segment(table: Table, ints: Array) -> None:
    t = np.arange(32)
    up = run(table, "o[t] = __shfl_up_sync(~0u, t, 3, 8);", 32, ints)
    assert np.array_equal(up, np.where(t % 8 >= 3, t - 3, t))
    down = run(table, "o[t] = __shfl_down_sync(~0u, t, 3, 8);", 32, ints)
    assert np.array_equal(down, np.where(t % 8 < 5, t + 3, t))
    index = run(table, "o[t] = __shfl_sync(~0u, t, 9, 8);", 32, ints)
    assert np.array_equal(index, t // 8 * 8 + 1)
    xor = run(table, "o[t] = __shfl_xor_sync(~0u, t, 8, 8);", 32, ints)  # lower segments may be read, higher not
    assert np.array_equal(xor, np.where(t // 8 % 2 == 1, t ^ 8, t))


def test_a_full_mask_in_a_partial_warp(table: Table, ints: Array) -> None:
    down = run(table, "o[t] = __shfl_down_sync(0xffffffffu, t, 1);", 20, ints)
    assert down.tolist() == [*range(1, 20), 19]
    assert set(run(table, "o[t] = __popc(__ballot_sync(~0u, t < 5));", 20, ints)) == {5}


def test_shuffles_of_other_types(table: Table) -> None:
    out = table.array(np.zeros(32))
    Module(table, """
struct pair { float a; int b; };
__global__ void k(double *o) {
  pair p = {threadIdx.x * 0.5f, (int)threadIdx.x};
  p = __shfl_sync(~0u, p, 31 - threadIdx.x);
  o[threadIdx.x] = __shfl_xor_sync(~0u, (double)p.a + p.b, 1) + __shfl_sync(~0u, (unsigned short)7, 0);
}""").run("k", 1, 32, out)  # fmt: skip
    t = np.arange(32)
    assert np.array_equal(out.read(), (31 - (t ^ 1)) * 1.5 + 7)


def test_votes_matches_and_reductions(table: Table, ints: Array) -> None:
    assert set(run(table, "o[t] = __any_sync(~0u, t == 3) + 2 * __all_sync(~0u, t < 32);", 32, ints)) == {3}
    ballot = run(table, "o[t] = (int)__ballot_sync(~0u, t % 3 == 0);", 32, ints)
    assert set(ballot.view(np.uint32)) == {sum(1 << lane for lane in range(0, 32, 3))}
    match = run(table, "o[t] = (int)__match_any_sync(~0u, t % 4);", 32, ints).view(np.uint32)
    assert match.tolist() == [sum(1 << lane for lane in range(t % 4, 32, 4)) for t in range(32)]
    body = """
  int p, q;
  unsigned m = __match_all_sync(~0u, 5, &p), n = __match_all_sync(~0u, t, &q);
  o[t] = p + 2 * q + 4 * (m == ~0u) + 8 * (n == 0);"""
    assert set(run(table, body, 32, ints)) == {13}
    sums = {
        "__reduce_add_sync(~0u, t)": 496,
        "__reduce_min_sync(~0u, t - 5)": -5,
        "__reduce_max_sync(~0u, t - 50)": -19,
        "__reduce_max_sync(~0u, (unsigned)(t - 5))": -1,
        "__reduce_min_sync(~0u, (unsigned)(t - 5))": 0,
        "__reduce_and_sync(~0u, 96u + t)": 96,
        "__reduce_or_sync(~0u, (unsigned)t)": 31,
        "__reduce_xor_sync(~0u, 1u << t)": -1,
    }
    for expression, expected in sums.items():
        assert set(run(table, f"o[t] = (int){expression};", 32, ints)) == {expected}, expression


def test_collectives_in_loops_with_different_trip_counts(table: Table, ints: Array) -> None:
    body = "int left = t, n = 0; while (__any_sync(~0u, left > 0)) { --left; ++n; } o[t] = n;"
    assert set(run(table, body, 32, ints)) == {31}


def test_active_masks_of_two_branches_on_one_line(table: Table, ints: Array) -> None:
    body = "if (t % 3 == 0) o[t] = (int)__activemask(); else o[t] = ~(int)__activemask();"
    third = sum(1 << lane for lane in range(0, 32, 3))
    got = run(table, body, 32, ints).view(np.uint32)
    assert set(got[::3]) == {third} and set(np.delete(got, np.s_[::3])) == {third}


def test_lanes_that_left_are_not_waited_for(table: Table, ints: Array) -> None:
    body = """
  if (t % 2) return;
  for (int i = 0; i < 3; ++i) o[t] = (int)__ballot_sync(~0u, 1);
  __syncthreads();
  __syncwarp();"""
    assert set(run(table, body, 64, ints)[::2]) == {0x55555555}


def test_shared_memory_ordered_by_syncwarp(table: Table, ints: Array) -> None:
    body = "__shared__ int s[32]; s[t] = t; __syncwarp(); o[t] = s[31 - t]; __syncwarp(); s[t] = 0;"
    assert run(table, body, 32, ints).tolist() == list(range(31, -1, -1))


def test_cooperative_groups(table: Table, ints: Array) -> None:
    source = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void k(int *o) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  __shared__ int s[64];
  int t = block.thread_rank();
  s[t] = cg::reduce(tile, t, cg::plus<int>()) + 1000 * tile.meta_group_rank() + 100000 * (tile.thread_rank() == t % 8);
  cg::sync(block);
  o[t] = s[blockDim.x - 1 - t];
  int odd = tile.ballot(t % 2);
  o[64 + t] = cg::inclusive_scan(tile, 1, cg::plus<int>()) + 10 * tile.shfl_down(t, 1) + 10000 * odd;
  if (t % 3 == 0) {
    cg::coalesced_group active = cg::coalesced_threads();
    o[128 + t] = active.thread_rank() + 100 * active.size() + 10000 * active.shfl(t, 1);
  }
}"""
    Module(table, source).run("k", 1, 64, ints)
    t, got = np.arange(64), ints.read()
    sums = t.reshape(8, 8).sum(1).repeat(8) + 1000 * (t // 8) + 100000
    assert np.array_equal(got[:64], sums[::-1])
    assert np.array_equal(got[64:128], t % 8 + 1 + 10 * np.where(t % 8 < 7, t + 1, t) + 10000 * 0xAA)
    first, second = np.arange(0, 32, 3), np.arange(33, 64, 3)
    assert np.array_equal(got[128 + first], np.arange(11) + 1100 + 10000 * 3)
    assert np.array_equal(got[128 + second], np.arange(11) + 1100 + 10000 * 36)


# ---- waiting in loops


def test_spin_lock(table: Table, ints: Array) -> None:
    source = """
__global__ void k(int *count, int *lock) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      count[0] += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}"""
    Module(table, source).run("k", 8, 128, ints, table.array(np.zeros(1, np.int32)))
    assert ints.read()[0] == 1024


@pytest.mark.parametrize("pause", ["__nanosleep(20)", "__threadfence()", "atomicAdd(&o[5], 0)"])
def test_a_flag_set_by_a_thread_that_starts_later(table: Table, ints: Array, pause: str) -> None:
    body = (
        f"volatile int *flag = o; if (t == 0) {{ while (flag[1] == 0) {pause}; o[0] = 42; }} if (t == 33) flag[1] = 1;"
    )
    assert run(table, body, 64, ints)[0] == 42


def test_blocks_that_wait_for_earlier_blocks(table: Table, ints: Array) -> None:
    source = """
__global__ void k(int *o) {
  if (threadIdx.x == 0) {
    while (blockIdx.x > 0 && atomicAdd(&o[blockIdx.x - 1], 0) == 0) {}
    atomicExch(&o[blockIdx.x], blockIdx.x + 1);
  }
}"""
    Module(table, source).run("k", 300, 32, ints)
    assert ints.read()[:300].tolist() == list(range(1, 301))


# ---- atomics, memory spaces


def test_atomics(table: Table) -> None:
    source = """
#include <cuda_fp16.h>
__global__ void k(int *i, unsigned *u, unsigned long long *w, long long *s, float *f, double *d, half *h,
                  unsigned short *c) {
  int t = threadIdx.x + blockIdx.x * blockDim.x;
  atomicAdd(i, t); atomicSub(i + 1, t); atomicMin(i + 2, -t); atomicMax(i + 3, t); atomicOr(i + 4, 1 << t % 31);
  atomicAnd(i + 5, ~(1 << t % 31)); atomicXor(i + 6, 1 << t % 31);
  atomicAdd_block(i + 7, 1); atomicAdd_system(i + 7, 1);
  atomicInc(u, 9); atomicDec(u + 1, 9); atomicMax(u + 2, (unsigned)-t); atomicMin(u + 3, (unsigned)t + 5);
  atomicAdd(w, 1ull << 33); atomicMax(s, (long long)t << 33); atomicMin(s + 1, -((long long)t << 33));
  atomicAdd(f, 0.5f); atomicAdd(d, 0.25); atomicAdd(h, half(1.0f));
  if (t == 5) {
    i[8] = atomicExch(i + 9, 77); f[1] = atomicExch(f + 2, 1.5f);
    atomicCAS(c, 3, 9); i[10] = atomicCAS(i + 11, 1, 2);
  }
}"""
    n = 512
    ints = np.zeros(12, np.int32)
    ints[5], ints[9] = -1, 5
    arrays = [
        table.array(values)
        for values in (
            ints, np.array([0, 0, 0, 99], np.uint32), np.zeros(1, np.uint64), np.zeros(2, np.int64),
            np.array([0, 0, 4], np.float32), np.zeros(1), np.zeros(2, np.float16), np.array([3, 0], np.uint16),
        )
    ]  # fmt: skip
    Module(table, source).run("k", 4, n // 4, *arrays)
    i, u, w, s, f, d, h, c = (array.read() for array in arrays)
    total = n * (n - 1) // 2
    bits = int(np.bitwise_xor.reduce([1 << t % 31 for t in range(n)]))
    assert i.tolist() == [total, -total, -511, 511, 2**31 - 1, -(2**31), bits, 2 * n, 5, 77, 0, 0]
    assert u.tolist() == [n % 10, (-n) % 10, 2**32 - 1, 5]
    assert w[0] == n << 33 and s.tolist() == [511 << 33, -(511 << 33)]
    assert f.tolist() == [n / 2, 4, 1.5] and d[0] == n / 4 and h[0] == n and c[0] == 9


def test_constants_globals_and_fresh_modules(table: Table, ints: Array) -> None:
    source = """
__constant__ float gain[4] = {1, 2, 3, 4};
static __constant__ int offset = 5;
namespace deep { namespace er { __device__ int counter = 10; } }
__device__ int optind, y1, index;  // names that the C library has too
__global__ void pause(int *o) {
  o[threadIdx.x] = (int)gain[threadIdx.x % 4] * 10 + offset + y1;
  atomicAdd(&deep::er::counter, 1);
  index = optind = 3;
}
"""
    module = Module(table, source)
    address, size = ctypes.c_uint64(), ctypes.c_uint64()

    def find(handle: int, name: bytes) -> int:
        table.ok("module_global", handle, name, ctypes.byref(address), ctypes.byref(size))
        return address.value

    table.ok(
        "copy_h2d",
        find(module.handle, b"gain"),
        np.array([5, 6, 7, 8], np.float32).ctypes.data_as(ctypes.c_void_p),
        16,
        0,
    )
    assert size.value == 16
    table.ok("fill", find(module.handle, b"offset"), 7, 4, 1, 0)
    module.run("pause", 1, 8, ints)
    assert ints.read()[:8].tolist() == [57, 67, 77, 87] * 2
    value = ctypes.c_int32()
    table.ok("copy_d2h", ctypes.byref(value), find(module.handle, b"deep::er::counter"), 4, 0)
    table.ok("stream_wait", 0)
    assert value.value == 18
    again = Module(table, source)  # the same image: its own variables
    table.ok("copy_d2h", ctypes.byref(value), find(again.handle, b"deep::er::counter"), 4, 0)
    table.ok("stream_wait", 0)
    assert value.value == 10
    table.fails(NOT_FOUND, "module_global", module.handle, b"nothing", ctypes.byref(address), ctypes.byref(size))
    assert "pause" in table.fails(NOT_FOUND, "module_function", module.handle, b"play", ctypes.byref(address))


def test_many_modules(table: Table, ints: Array) -> None:
    module = Module(
        table, "__device__ int n; __global__ void k(int *o) { __shared__ int s[1024]; s[0] = ++n; o[0] = s[0]; }"
    )
    loaded = [table.get("module_load", module.image.image, len(module.image.image)) for _ in range(300)]
    for handle in loaded:
        module._functions["k"] = table.get("module_function", handle, b"k")
        module.run("k", 1, 1, ints)
        assert ints.read()[0] == 1
        table.ok("module_unload", handle)


@pytest.mark.parametrize("name", ["pause", "index", "k", "exit", "read", "gamma"])
def test_kernels_may_have_names_of_the_c_library(table: Table, ints: Array, name: str) -> None:
    source = f"__device__ int optind, y1, environ; __global__ void {name}(int *o) {{ o[0] = ++optind + y1 + environ; }}"
    for _ in range(2):  # loaded again, its variables start again
        Module(table, source).run(name, 1, 1, ints)
        assert ints.read()[0] == 1


def test_dynamic_shared_memory_inside_and_outside_functions(table: Table, ints: Array) -> None:
    source = """
extern __shared__ float everywhere[];
namespace n { extern __shared__ __align__(8) double here[]; }
template <class T> __device__ T *typed() {
  extern __shared__ __align__(16) unsigned char raw[];
  return reinterpret_cast<T *>(raw);
}
__global__ void k(int *o) {
  extern __shared__ int mine[]; extern volatile __shared__ int rows[][4];
  mine[threadIdx.x] = threadIdx.x * 3;
  __syncthreads();
  bool same = (void *)mine == (void *)everywhere && (void *)mine == (void *)n::here && typed<int>() == mine;
  o[threadIdx.x] = mine[blockDim.x - 1 - threadIdx.x] + 1000 * same + 10000 * (rows[1][2] == mine[6]);
}"""
    Module(table, source).run("k", 3, 64, ints, shared=256)
    assert ints.read()[:64].tolist() == [11000 + 3 * t for t in range(63, -1, -1)]


def test_printf_reaches_python(table: Table) -> None:
    native.take_device_output()
    module = Module(table, r'__global__ void k(float x) { printf("%d %s %.2f|", (int)threadIdx.x, "text", x); }')
    module.run("k", 1, 3, 1.5)
    assert native.take_device_output() == "0 text 1.50|1 text 1.50|2 text 1.50|"
    assert native.take_device_output() == ""
    Module(table, r'__global__ void k() { for (int i = 0; i < 3000; ++i) printf("%0500d\n", i); }').run("k", 1, 1)
    lines = native.take_device_output().splitlines()
    assert len(lines[0]) == 500 and "bytes of device output dropped" in lines[-1]


def test_kernel_parameters(table: Table) -> None:
    source = """
struct shape { char tag; double size; int extent[3]; };
template <int N> struct box { float values[N]; };
__global__ void k(double *o, bool flag, unsigned char small, shape s, long long big, float4 v, box<3> b,
                  const float *const p) {
  o[0] = flag; o[1] = small; o[2] = s.tag; o[3] = s.size; o[4] = s.extent[2];
  o[5] = big; o[6] = v.w; o[7] = b.values[2]; o[8] = p == nullptr;
}"""
    module = Module(table, source)
    shape = np.zeros(1, np.dtype([("tag", "i1"), ("size", "f8"), ("extent", "i4", 3)], align=True))
    shape["tag"], shape["size"], shape["extent"] = 65, 2.5, (1, 2, 3)
    out = table.array(np.zeros(9))
    module.run(
        "k", 1, 1, out, True, ctypes.c_uint8(200), shape.tobytes(), ctypes.c_int64(1 << 40),
        np.arange(4, dtype=np.float32).tobytes(), np.arange(3, dtype=np.float32).tobytes(), ctypes.c_uint64(0),
    )  # fmt: skip
    assert out.read().tolist() == [1, 200, 65, 2.5, 3, 2.0**40, 3, 2, 1]
    offset, size = ctypes.c_uint64(), ctypes.c_uint64()
    found = []
    for index in range(8):
        table.ok("function_param", module.function("k"), index, ctypes.byref(offset), ctypes.byref(size))
        found.append((offset.value, size.value))
    assert found == [(0, 8), (8, 1), (9, 1), (16, 32), (48, 8), (64, 16), (80, 12), (96, 8)]
    table.fails(INVALID_VALUE, "function_param", module.function("k"), 8, ctypes.byref(offset), ctypes.byref(size))
    info = FunctionInfo()
    table.ok("function_info", module.function("k"), ctypes.byref(info))
    assert (info.param_count, info.registers, info.max_threads_per_block) == (8, 0, 1024)


# ---- limits


def test_launch_limits_are_those_of_a_device(table: Table, ints: Array) -> None:
    module = Module(table, """
__global__ void k(int *o) {}
__global__ void __launch_bounds__(128, 2) bounded(int *o) {
  __shared__ int s[1000];
  s[threadIdx.x] = 1;
  o[threadIdx.x] = s[0];
}
""")  # fmt: skip
    for grid, block in (
        (1, 1025),
        (1, (1, 1, 65)),
        (1, (32, 32, 2)),
        (1, 0),
        ((1, 65536), 1),
        ((1, 1, 65536), 1),
        (0, 1),
    ):
        assert module.launch("k", grid, block, ints) == INVALID_VALUE, (grid, block)
    assert module.launch("bounded", 1, 129, ints) == OUT_OF_RESOURCES
    assert module.launch("k", 1, 1, ints, shared=49153) == INVALID_VALUE
    table.ok("function_set_dynamic_shared", module.function("k"), 227 << 10)
    module.run("k", 1, 1, ints, shared=227 << 10)
    table.fails(INVALID_VALUE, "function_set_dynamic_shared", module.function("k"), (227 << 10) + 1)
    info = FunctionInfo()
    table.ok("function_info", module.function("bounded"), ctypes.byref(info))
    assert (info.static_shared_bytes, info.max_threads_per_block) == (4000, 128)
    blocks = ctypes.c_int32()
    table.ok("function_occupancy", module.function("k"), 256, 100 << 10, ctypes.byref(blocks))
    assert blocks.value == 2
    module.run("bounded", 1, 128, ints)


def test_static_shared_memory_is_limited_for_each_kernel(table: Table) -> None:
    two = "__global__ void {0}(int *o) {{ __shared__ int s[{1}]; s[threadIdx.x] = 1; o[0] = s[0]; }}\n"
    Module(table, two.format("one", 12288) + two.format("other", 12288))
    with pytest.raises(AssertionError, match=rf"{INVALID_IMAGE}.*big uses too much shared data: 49156 bytes"):
        Module(table, two.format("one", 12288) + two.format("big", 12289))
