"""What C++ in device code may do: recursion, lambdas, function pointers, templates, printf; on both backends."""

from __future__ import annotations

import numpy as np
import pytest

import pygpukit as gp
from pygpukit._core import native

pytestmark = pytest.mark.usefixtures("backend_name")

LANGUAGE = """
typedef int (*operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
template <class F> __device__ int twice(F f, int x) { return f(f(x)); }
template <int N> struct power { __device__ static constexpr int of(int x) { return x * power<N - 1>::of(x); } };
template <> struct power<0> { __device__ static constexpr int of(int) { return 1; } };
template <class... T> __device__ int sum(T... values) { return (0 + ... + values); }
struct vec { int x, y; __device__ vec operator+(vec o) const { return {x + o.x, y + o.y}; } };
enum class side { left = 3, right };
__device__ int table[3] = {10, 20, 30};
__constant__ int factors[4] = {1, 2, 3, 4};
namespace deep { namespace er { __device__ int offset = 7; } }
static_assert(power<3>::of(2) == 8, "computed by the compiler");

__global__ void __launch_bounds__(64) k(int *__restrict__ o, int n) {
  int t = threadIdx.x;
  __builtin_assume(n > 0);
  operation chosen = t % 2 ? plus : times;
  o[t] = chosen(t, 3);
  o[n + t] = fibonacci(t % 12);
  int captured = t;
  o[2 * n + t] = twice([&](int x) { return x * 2 + captured; }, 1);
  int total = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) total += factors[i] * table[i % 3];
  o[3 * n + t] = total + power<3>::of(t % 5) + sum(1, t, 2L) + deep::er::offset;
  vec both = vec{t, 1} + vec{1, 2};
  union { float f; unsigned u; } bits;
  bits.f = 1.0f;
  switch (t % 3) {
    case 0: o[4 * n + t] = both.x * 10 + both.y; break;
    case 1: o[4 * n + t] = (int)(bits.u >> 23); break;
    default: o[4 * n + t] = (int)side::right;
  }
  auto *local = new int[2]{t, 5};
  o[5 * n + t] = local[0] * local[1];
  delete[] local;
}"""


def test_the_language() -> None:
    n = 48
    out = gp.from_numpy(np.zeros((6, n), np.int32))
    gp.jit(LANGUAGE, func="k")[1, n](out, n)
    got = out.to_numpy()
    t = np.arange(n)
    fibonacci = [0, 1]
    while len(fibonacci) < 12:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    assert np.array_equal(got[0], np.where(t % 2, t + 3, t * 3))
    assert np.array_equal(got[1], np.array(fibonacci)[t % 12])
    assert np.array_equal(got[2], (2 + t) * 2 + t)
    assert np.array_equal(got[3], 10 + 40 + 90 + 40 + (t % 5) ** 3 + t + 3 + 7)
    assert np.array_equal(got[4], np.choose(t % 3, [(t + 1) * 10 + 3, np.full(n, 127), np.full(n, 4)]))
    assert np.array_equal(got[5], t * 5)


def test_every_format_of_printf(capfd: pytest.CaptureFixture[str]) -> None:
    source = r"""
__global__ void k(int n) {
  if (threadIdx.x == n)
    printf("%d|%5d|%-5d|%05d|%+d|%x|%X|%o|%u|%c|%s|%%|%f|%.2f|%8.3e|%g|%lld|%llu|%p|\n", n, n, n, n, n, 255, 255, 8,
           3000000000u, 'z', "text", 1.5, 2.379, 12345.678, 0.0001, -5000000000LL, 18446744073709551615ull, (void *)0);
}"""
    native.take_device_output()
    gp.jit(source, func="k")[1, 32](7)
    gp.synchronize()
    text = native.take_device_output() or capfd.readouterr().out
    fields = text.strip().split("|")
    assert fields[:18] == [
        "7", "    7", "7    ", "00007", "+7", "ff", "FF", "10", "3000000000", "z", "text", "%", "1.500000", "2.38",
        "1.235e+04", "0.0001", "-5000000000", "18446744073709551615",
    ]  # fmt: skip
