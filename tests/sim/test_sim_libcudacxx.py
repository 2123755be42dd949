"""Headers of libcu++ on the simulated device: each is included, used, and gives what NVRTC's own gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from libcudacxx_uses import USES

import pygpukit as gp
from pygpukit.core.errors import CompileError
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.toolchain import nvrtc_candidates

HEAD = "struct A {}; struct B : A {};\n"


def source_of(header: str) -> str:
    code = USES[header][0]
    return f"#include <{header}>\n{HEAD}__global__ void k(int *out) {{ int o = 0; {code} out[0] = o; }}"


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("header", USES)
def test_a_header_is_what_its_name_says(header: str, check: bool) -> None:
    out = gp.from_numpy(np.full(1, -1, "int32"))
    gp.jit(source_of(header), check=check)[1, 1](out)
    assert out.to_numpy()[0] == USES[header][1]


def test_nvrtc_takes_the_same_uses() -> None:
    if not any(Path(path).is_file() for path in nvrtc_candidates()):
        pytest.skip("needs NVRTC")
    includes = "".join(f"#include <{header}>\n" for header in USES)
    kernels = "".join(
        f"__global__ void k{number}(int *out) {{ int o = 0; {code} out[0] = o; }}\n"
        for number, (code, _) in enumerate(USES.values())
    )
    compile_source(includes + HEAD + kernels, arch="sm_90a")


@pytest.mark.parametrize("header", ["", "#include <cuda/std/tuple>\n", "#include <cuda/std/array>\n"])
def test_members_of_a_plain_struct_are_bound_to_const_names(header: str) -> None:
    out = gp.zeros(1, "int32")
    code = "struct S { int a, b; }; __device__ S both() { return {3, 4}; }\n"
    code += "__global__ void k(int *out) { const auto [a, b] = both(); out[0] = 10 * a + b; }"
    gp.jit(header + code)[1, 1](out)
    assert out.to_numpy()[0] == 34


BARRIER = """#include <cuda/barrier>
__global__ void k(int *out, int arrivals) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, arrivals);
  __syncthreads();
  if (threadIdx.x < 3) {
    bar.arrive_and_drop();
  } else {
    bar.wait(bar.arrive());
    bar.arrive_and_wait();
    out[threadIdx.x] = 1;
  }
}"""


@pytest.mark.parametrize("check", [False, True])
def test_threads_drop_out_of_a_barrier(check: bool) -> None:
    out = gp.from_numpy(np.zeros(8, "int32"))
    gp.jit(BARRIER, check=check)[1, 8](out, 8)
    assert out.to_numpy().tolist() == [0] * 3 + [1] * 5


def test_more_arrivals_than_a_barrier_expects_end_the_kernel() -> None:
    source = """#include <cuda/barrier>
__global__ void k() {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  init(&bar, 1);
  bar.arrive(2);
}"""
    kernel = gp.jit(source, name="cell")
    with pytest.raises(gp.GPUError, match="more arrivals at a cuda::barrier than it expects") as raised:
        kernel[1, 1]()
        gp.synchronize()
    assert "cell:5" in str(raised.value)


def test_what_a_barrier_does_not_order_is_a_race() -> None:
    source = """#include <cuda/barrier>
__global__ void k(int *out) {
  __shared__ int values[32];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, 32);
  __syncthreads();
  values[threadIdx.x] = threadIdx.x;
  WAIT
  out[threadIdx.x] = values[31 - threadIdx.x];
}"""
    out = gp.from_numpy(np.zeros(32, "int32"))
    gp.jit(source.replace("WAIT", "bar.arrive_and_wait();"), check=True)[1, 32](out)
    assert out.to_numpy().tolist() == list(range(31, -1, -1))
    with pytest.raises(gp.GPUError):  # the wait is left out
        gp.jit(source.replace("WAIT", "bar.arrive();"), check=True)[1, 32](out)
        gp.synchronize()


@pytest.mark.parametrize("kind", ["cuda::atomic<int, cuda::thread_scope_block>", "cuda::std::atomic<int>"])
@pytest.mark.parametrize("set_it", ["seen = 5", "seen.store(5)", "seen.exchange(5)"])
def test_a_store_reads_nothing(kind: str, set_it: str) -> None:
    """Checked mode takes the first store into shared memory for what it is."""
    source = f"""#include <cuda/atomic>
__global__ void k(int *out) {{
  __shared__ {kind} seen;
  if (threadIdx.x == 0) {set_it};
  __syncthreads();
  seen.fetch_add(2);
  __syncthreads();
  out[0] = seen.load();
}}"""
    out = gp.zeros(1, "int32")
    gp.jit(source, check=True)[1, 64](out)
    assert out.to_numpy()[0] == 133


@pytest.mark.parametrize("check", [False, True])
def test_groups_update_an_atomic(check: bool) -> None:
    source = """#include <cuda/atomic>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
__global__ void k(const int *x, int *places, int *out) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  cuda::atomic_ref<int, cuda::thread_scope_device> sum(places[0]), most(places[1]), total(places[2]), other(places[3]);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  cg::reduce_update_async(tile, sum, x[i], cg::plus<int>());
  cg::reduce_update_async(tile, most, x[i], cg::greater<int>());
  out[i] = cg::inclusive_scan_update(tile, total, x[i], cg::plus<int>());
  out[128 + i] = cg::exclusive_scan_update(tile, other, x[i], cg::plus<int>());
}"""
    x = np.random.default_rng().integers(-99, 99, 128).astype("int32")
    places, out = gp.from_numpy(np.array([7, -1000, 0, 0], "int32")), gp.zeros(256, "int32")
    gp.jit(source, check=check)[2, 64](gp.from_numpy(x), places, out)
    assert places.to_numpy().tolist() == [7 + x.sum(), x.max(), x.sum(), x.sum()]
    whole, before = out.to_numpy().reshape(2, 128)
    assert np.array_equal(whole - before, x)
    starts, ends = before.reshape(8, 16)[:, 0], whole.reshape(8, 16)[:, -1]
    assert sorted([*starts, x.sum()]) == sorted([0, *ends])  # tiles in any order, each from where another ended
    assert np.array_equal(whole.reshape(8, 16) - starts[:, None], x.reshape(8, 16).cumsum(1))


@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ("thrust/sort.h", "Thrust is for host code"),
        ("cub/device/device_scan.cuh", "cub/block/block_reduce.cuh"),
        ("cub/block/block_topk.cuh", "no such part of CUB"),
        ("cuda/ptx", "no such part of libcu"),
    ],
)
def test_a_header_that_is_not_there_is_told_with_a_remedy(header: str, remedy: str) -> None:
    with pytest.raises(CompileError, match=f"kernel:1:10: {header}: .*{remedy}"):
        compile_source(f"#include <{header}>\n__global__ void k() {{}}", arch="sim")


WIDTHS = """#include <cooperative_groups.h>
#include <cuda/std/cstdint>
#include <cuda/std/type_traits>
typedef long long int64_t;  // what the headers have said already
typedef unsigned long long uint64_t;
static_assert(cuda::std::is_same<intptr_t, long long>::value && cuda::std::is_same<uintmax_t, uint64_t>::value, "");
static_assert(cuda::std::is_same<int_fast16_t, short>::value, "");
static_assert(sizeof(UINT64_C(1)) == 8 && INT_FAST16_MAX == 32767 && UINTPTR_MAX == ~0ull && PTRDIFF_MIN < 0, "");
__global__ void k(int64_t *out, const uint64_t *x) {
  atomicAdd((unsigned long long *)out, x[0]);
  out[1] = max(out[0], INT64_C(7)) + INT64_MIN + INT32_C(1);
}"""


@pytest.mark.parametrize("check", [False, True])
def test_integers_of_64_bits_are_long_long_as_under_nvrtc(check: bool) -> None:
    if any(Path(path).is_file() for path in nvrtc_candidates()):
        compile_source(WIDTHS, arch="sm_90a")
    out = gp.from_numpy(np.array([5, -1], "int64"))
    gp.jit(WIDTHS, check=check)[1, 1](out, gp.from_numpy(np.array([6], "uint64")))
    assert out.to_numpy().tolist() == [11, 12 - 2**63]
