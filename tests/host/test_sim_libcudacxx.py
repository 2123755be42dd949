"""Headers of libcu++ on the simulated device: each is included, used, and gives what NVRTC's own gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.jit.compile.compiler import compile_source
from pygpukit.jit.toolchain import nvrtc_candidates

# By header: code that sets an int `o`, and the value.
USES = {
    "cuda/std/type_traits": (
        "using namespace cuda::std; static_assert(is_same_v<remove_cvref_t<const int &>, int>);"
        "static_assert(is_floating_point<float>::value && !is_integral_v<float> && is_pointer_v<int *const>);"
        "static_assert(is_same<conditional_t<true, char, int>, char>::value && is_unsigned_v<unsigned char>);"
        "static_assert(is_same_v<make_unsigned_t<int>, unsigned> && is_convertible_v<int, float>);"
        "static_assert(is_same_v<decay_t<int[3]>, int *> && is_same_v<common_type_t<int, float>, float>);"
        "static_assert(!is_convertible_v<float *, int> && is_array_v<int[2]> && is_base_of_v<A, B>);"
        "o = sizeof(enable_if_t<is_class_v<A>, short>);", 2,
    ),
    "cuda/std/limits": (
        "o = cuda::std::numeric_limits<int>::max() == 0x7fffffff && cuda::std::numeric_limits<char>::lowest() == -128"
        " && cuda::std::numeric_limits<unsigned long long>::max() == ~0ull"
        " && cuda::std::numeric_limits<float>::infinity() > cuda::std::numeric_limits<float>::max()"
        " && cuda::std::numeric_limits<double>::epsilon() == 1.0 / (1ll << 52);", 1,
    ),
    "cuda/std/cstdint": ("cuda::std::uint8_t a = 300; cuda::std::int64_t b = 1ll << 40; o = a + (b >> 38);", 48),
    "cuda/std/utility": (
        "int a = 1, b = 2; cuda::std::swap(a, b); auto p = cuda::std::make_pair(a, 3.0f);"
        "o = 10 * p.first + (int)p.second + cuda::std::exchange(b, 7) + b;", 31,
    ),
    "cuda/std/algorithm": ("o = cuda::std::min(3, 5) + cuda::std::max(7, 2) + cuda::std::clamp(9, 0, 4);", 14),
    "cuda/std/functional": (
        "o = cuda::std::plus<int>()(1, 2) + cuda::std::multiplies<>()(3, 4) + cuda::std::less<int>()(1, 2);", 16,
    ),
    "cuda/std/bit": (
        "o = cuda::std::popcount(255u) + cuda::std::countl_zero(1u) + cuda::std::countr_zero(8ull)"
        " + cuda::std::bit_width(9u) + (cuda::std::bit_cast<unsigned>(1.0f) == 0x3f800000u)"
        " + (int)cuda::std::rotl(0x80000001u, 1) + cuda::std::has_single_bit(64u);", 8 + 31 + 3 + 4 + 1 + 3 + 1,
    ),
    "cuda/std/cmath": ("o = (int)(cuda::std::sqrt(16.0f) + cuda::std::floor(2.5) + cuda::std::abs(-3.0f));", 9),
    "cuda/cmath": ("o = cuda::ceil_div(10, 4);", 3),
    "cuda/std/array": (
        "cuda::std::array<int, 3> a = {1, 2, 3}; for (int x : a) o += x; o += a.size() + a.back() + a[0];", 13,
    ),
    "cuda/std/span": (
        "int a[4] = {1, 2, 3, 4}; cuda::std::span<int> s(a, 4); for (int x : s.subspan(1)) o += x; o += s.size();", 13,
    ),
    "cuda/std/optional": (
        "cuda::std::optional<int> a = 3, b = cuda::std::nullopt; o = *a + b.value_or(4) + 10 * b.has_value();", 7,
    ),
    "cuda/std/tuple": (
        "auto t = cuda::std::make_tuple(1, 2.5f, 'a'); cuda::std::get<0>(t) = 5;"
        "o = cuda::std::get<0>(t) + (int)(2 * cuda::std::get<1>(t)) + cuda::std::tuple_size_v<decltype(t)>;", 13,
    ),
    "cuda/std/complex": (
        "cuda::std::complex<float> z(3.0f, 4.0f), w = z * cuda::std::conj(z); z *= z;"
        "o = (int)(w.real() + cuda::std::abs(cuda::std::complex<float>(3.0f, 4.0f)) + z.imag());", 54,
    ),
    "cuda/std/atomic": ("cuda::std::atomic<int> a(3); a += 4; o = a.fetch_add(1) + a.load() + a.exchange(0);", 23),
    "cuda/atomic": (
        "int x = 5; cuda::atomic_ref<int> r(x); r.fetch_max(9); int seen = 9;"
        "o = r.compare_exchange_strong(seen, 2) + x; cuda::atomic_thread_fence(cuda::memory_order_release);", 3,
    ),
}  # fmt: skip
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
