"""The language of tile kernels, beside NumPy: arithmetic, moves, reductions, products, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygpukit as gp
from pygpukit.core.backend import is_sim
from pygpukit.jit.compile import tile

needs_compiler = pytest.mark.skipif(not is_sim() and bool(tile.missing()), reason="needs a compiler of tile kernels")
pytestmark = [pytest.mark.usefixtures("backend_name", "quickly_compiled"), needs_compiler]

HEAD = """#include <cuda_tile.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_tf32.h>
namespace ct = cuda::tiles;
using namespace ct::literals;
// Tiles of stacks of dense matrices.
template <int Rows, int Columns, typename T>
__tile__ auto stack(T* data, int count, int rows, int columns) {
  return ct::partition_view{ct::tensor_span{data, ct::extents{count, rows, columns}}, ct::shape<1, Rows, Columns>{}};
}
template <int Rows, int Columns, typename T>
__tile__ auto matrix(T* data, int rows, int columns) {
  return ct::partition_view{ct::tensor_span{data, ct::extents{rows, columns}}, ct::shape<Rows, Columns>{}};
}
template <typename View, typename Tile>
__tile__ void put(View out, int at, Tile tile) {
  auto cast = ct::element_cast<ct::tile_element_t<typename View::view_tile_type>>(tile);
  out.store_masked(ct::reshape(cast, typename View::view_tile_type::shape_type{}), at, 0, 0);
}
"""

KERNELS = """
extern "C" __tile_global__ void functions(const float* x_, float* y, int rows, int columns) {
  auto x = matrix<8, 16>(x_, rows, columns).load_masked(0, 0);
  auto out = stack<8, 16>(y, 20, rows, columns);
  auto large = ct::abs(x) + 0.5f;
  put(out, 0, ct::exp(x)); put(out, 1, ct::exp2(x)); put(out, 2, ct::log(large)); put(out, 3, ct::log2(large));
  put(out, 4, ct::sqrt(large)); put(out, 5, ct::rsqrt(large)); put(out, 6, ct::sin(x)); put(out, 7, ct::cos(x));
  put(out, 8, ct::tan(x)); put(out, 9, ct::sinh(x)); put(out, 10, ct::cosh(x)); put(out, 11, ct::tanh(x));
  put(out, 12, ct::floor(x)); put(out, 13, ct::ceil(x)); put(out, 14, -x); put(out, 15, ct::pow(large, x));
  put(out, 16, ct::atan2(x, large)); put(out, 17, ct::fma(x, large, x));
  const ct::round_subnormals_to_zero_t flush;
  put(out, 18, ct::div(1.0f, large, ct::round_approximate_t{}, flush)); put(out, 19, ct::exp2(x - 140.0f, flush));
}

extern "C" __tile_global__ void broadcasts(const float* x_, const float* row_, const float* column_, float* y, int rows,
                                           int columns) {
  auto x = matrix<8, 16>(x_, rows, columns).load_masked(0, 0);
  auto row = matrix<1, 16>(row_, 1, columns).load_masked(0, 0);
  auto column = matrix<8, 1>(column_, rows, 1).load_masked(0, 0);
  auto line = ct::reshape(row, ct::shape<16>{});
  auto out = stack<8, 16>(y, 9, rows, columns);
  put(out, 0, x + row); put(out, 1, column - x); put(out, 2, row * column); put(out, 3, x / (column + 3));
  put(out, 4, 2.0f - line * x); put(out, 5, ct::max(x, line)); put(out, 6, ct::min(column, 0.25f) + x);
  put(out, 7, ct::select(x < row, x, ct::broadcast(column, ct::shape<8, 16>{})));
  put(out, 8, ct::select(!(x > 0.0f) || row >= 0.0f && x != column, x, -x));
}

extern "C" __tile_global__ void integers(const int* a_, const int* b_, int* y, int rows, int columns) {
  auto a = matrix<8, 16>(a_, rows, columns).load_masked(0, 0);
  auto b = matrix<8, 16>(b_, rows, columns).load_masked(0, 0);
  auto d = ct::select(b == 0, ct::ones<decltype(b)>(), b);
  auto out = stack<8, 16>(y, 16, rows, columns);
  put(out, 0, a + b); put(out, 1, a - b); put(out, 2, a * b); put(out, 3, a / d); put(out, 4, a % d);
  put(out, 5, a & b); put(out, 6, a | b); put(out, 7, a ^ b); put(out, 8, ~a); put(out, 9, a << 3);
  put(out, 10, a >> 2); put(out, 11, ct::max(a, b)); put(out, 12, ct::min(a, b)); put(out, 13, ct::abs(a));
  put(out, 14, ct::mulhi(a * 70001, b * 90001)); put(out, 15, ct::ceildiv(a, d) - ct::floordiv(a, d));
}

extern "C" __tile_global__ void moves(const float* x_, float* y) {
  auto x = matrix<8, 16>(x_, 8, 16).load(0, 0);
  auto out = stack<8, 16>(y, 7, 8, 16);
  put(out, 0, ct::transpose(x));
  put(out, 1, ct::permute(ct::reshape(x, ct::shape<2, 4, 16>{}), ct::dimension_map{2_ic, 0_ic, 1_ic}));
  auto half = ct::extract(x, ct::shape<4, 16>{}, 1, 0);
  put(out, 2, ct::cat(half, half, 0_ic));
  put(out, 3, ct::cat(ct::extract(x, ct::shape<8, 8>{}, 0, 1), ct::extract(x, ct::shape<8, 8>{}, 0, 0), 1_ic));
  put(out, 4, ct::insert(x, ct::full<ct::tile<float, ct::shape<2, 4>>>(7.0f), 3, 2));
  put(out, 5, ct::element_bitcast<float>(ct::element_bitcast<int>(x) ^ (int)0x80000000));
  auto places = ct::iota<ct::tile<int, ct::shape<16>>>();
  put(out, 6, ct::element_cast<float>(ct::broadcast(places, ct::shape<8, 16>{})) + (float)ct::num_blocks().x);
}

extern "C" __tile_global__ void reductions(const float* x_, float* down, float* along) {
  auto x = matrix<8, 16>(x_, 8, 16).load(0, 0);
  auto n = ct::element_cast<int>(x * 8.0f);
  auto out = stack<1, 16>(down, 6, 1, 16);
  put(out, 0, ct::sum(x, 0_ic)); put(out, 1, ct::prod(x, 0_ic)); put(out, 2, ct::reduce_max(x, 0_ic));
  put(out, 3, ct::reduce_min(x, 0_ic)); put(out, 4, ct::reduce_bitxor(n, 0_ic)); put(out, 5, ct::max_element(x, 0_ic));
  auto other = stack<8, 1>(along, 6, 8, 1);
  put(other, 0, ct::sum(x, 1_ic)); put(other, 1, ct::min_element(x, 1_ic)); put(other, 2, ct::any_of(x > 1.5f, 1_ic));
  put(other, 3, ct::all_of(x < 1.5f, 1_ic)); put(other, 4, ct::reduce_bitand(n, 1_ic));
  put(other, 5, ct::reduce_bitor(n, 1_ic));
}

extern "C" __tile_global__ void scans(const float* x_, float* y) {
  auto x = matrix<8, 16>(x_, 8, 16).load(0, 0);
  auto out = stack<8, 16>(y, 3, 8, 16);
  put(out, 0, ct::partial_sum(x, 0_ic)); put(out, 1, ct::partial_prod(x, 1_ic));
  put(out, 2, ct::partial_sum(x, 1_ic, ct::scan_backward_t{}));
}

extern "C" __tile_global__ void casts(const float* x_, float* y, int* n) {
  auto x = matrix<8, 16>(x_, 8, 16).load(0, 0);
  auto out = stack<8, 16>(y, 6, 8, 16);
  put(out, 0, ct::element_cast<__half>(x)); put(out, 1, ct::element_cast<__nv_bfloat16>(x));
  put(out, 2, ct::element_cast<__nv_fp8_e4m3>(x)); put(out, 3, ct::element_cast<__nv_fp8_e5m2>(x));
  put(out, 4, ct::element_cast<__nv_tf32>(x)); put(out, 5, ct::element_cast<double>(x) * 2.0);
  auto whole = stack<8, 16>(n, 2, 8, 16);
  put(whole, 0, ct::element_cast<int>(x)); put(whole, 1, ct::element_cast<bool>(x));
}

template <typename E, typename Sum>
__tile__ auto product(const float* a_, const float* b_) {
  auto a = ct::element_cast<E>(matrix<16, 32>(a_, 16, 32).load(0, 0));
  auto b = ct::element_cast<E>(matrix<32, 16>(b_, 32, 16).load(0, 0));
  return ct::element_cast<float>(ct::mma(a, b, ct::ones<ct::tile<Sum, ct::shape<16, 16>>>()));
}
extern "C" __tile_global__ void products(const float* a, const float* b, float* y) {
  auto out = stack<16, 16>(y, 9, 16, 16);
  put(out, 0, product<float, float>(a, b)); put(out, 1, product<__nv_bfloat16, float>(a, b));
  put(out, 2, product<__half, float>(a, b)); put(out, 3, product<__nv_fp8_e4m3, float>(a, b));
  put(out, 4, product<signed char, int>(a, b)); put(out, 5, product<double, double>(a, b));
  put(out, 6, product<__half, __half>(a, b));
  auto left = ct::reshape(matrix<16, 32>(a, 16, 32).load(0, 0), ct::shape<2, 8, 32>{});
  auto right = ct::reshape(matrix<32, 16>(b, 32, 16).load(0, 0), ct::shape<1, 32, 16>{});
  put(out, 7, ct::mma(left, right, ct::zeros<ct::tile<float, ct::shape<2, 8, 16>>>()));
  put(out, 8, ct::matmul(ct::element_cast<__nv_bfloat16>(left), ct::element_cast<__nv_bfloat16>(right)));
}

extern "C" __tile_global__ void pointers(const float* x, const int* places_, float* gathered, float* padded,
                                         float* scattered, int* counts, int n) {
  auto i = ct::iota<ct::tile<int, ct::shape<16>>>();
  auto places = ct::load_masked(places_ + i, i < n);
  ct::store_masked(gathered + i, ct::load(x + places), i < n);
  ct::store(padded + i, ct::load_masked(x + places, i % 2 == 0 && i < n, -5.0f));
  ct::store_masked(scattered + places, ct::element_cast<float>(i), i < n);
  auto before = ct::atomic_add_masked<ct::memory_order::relaxed>(counts + i / 8, i, i < n);
  ct::atomic_max<ct::memory_order::relaxed>(counts + 2, (int)ct::sum(i, 0_ic));
}

extern "C" __tile_global__ void views(float* x, float* y, int rows, int columns, int lead) {
  auto left = ct::tensor_span{x, ct::layout_strided_mapping{ct::extents{columns, rows}, ct::extents{1_ic, lead}}};
  auto turned = ct::partition_view{left, ct::shape<8, 4>{}}.load_masked(ct::view_padding_negative_inf_t{}, 1, 0);
  auto out = stack<8, 4>(y, 3, 8, 4);
  put(out, 0, turned);
  auto whole = ct::tensor_span{x, ct::layout_strided_mapping{ct::extents{rows, columns}, ct::strides{lead, 1_ic}}};
  auto sliding = ct::strided_view{whole, ct::shape<8, 4>{}, ct::strides{1_ic, 3_ic}};
  put(out, 1, sliding.load_masked(1, 2));
  put(out, 2, ct::partition_view{ct::tensor_span{x, ct::extents{rows, columns}, ct::layout_left{}}, ct::shape<8, 4>{}}
                  .load_masked(0, 1));
  auto tiles = ct::partition_view{whole, ct::shape<4, 8>{}};
  for (auto i : ct::irange(0, (rows + 3) / 4))
    for (auto j : ct::irange(0, (columns + 7) / 8, 2))
      tiles.store_masked(tiles.load_masked(i, j) + 100.0f, i, j);
}
"""


Array = np.ndarray[Any, Any]
RNG = np.random.default_rng()


def run(name: str, grid: int, *args: Any) -> None:
    gp.jit(HEAD + KERNELS, func=name)[grid](*args)


def uniform(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def poisoned(*shape: int) -> gp.GPUArray:
    return gp.full(shape, float("nan"), "float32")


def agree(found: gp.GPUArray, wanted: list[Any], tolerance: float = 2e-6) -> None:
    for i, (one, other) in enumerate(zip(found.to_numpy(), wanted, strict=True)):
        np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=f"result {i}")


def test_functions() -> None:
    x = uniform(5, 13)
    y = poisoned(20, 5, 13)
    run("functions", 1, gp.from_numpy(x), y, 5, 13)
    wide = x.astype(np.float64)
    large = np.abs(x) + np.float32(0.5)
    wanted = [np.exp(wide), np.exp2(wide), np.log(large), np.log2(large), np.sqrt(large), 1 / np.sqrt(large)]
    wanted += [np.sin(wide), np.cos(wide), np.tan(wide), np.sinh(wide), np.cosh(wide), np.tanh(wide)]
    wanted += [np.floor(x), np.ceil(x), -x, large**wide, np.arctan2(wide, large), wide * large + wide]
    agree(y, [*wanted, 1 / large, 0 * wide], 2e-6 if is_sim() else 1e-4)


def test_broadcasting() -> None:
    x, row, column = uniform(7, 11), uniform(1, 11), uniform(7, 1)
    y = poisoned(9, 7, 11)
    run("broadcasts", 1, *map(gp.from_numpy, (x, row, column)), y, 7, 11)
    wanted = [x + row, column - x, row * column, x / (column + 3), 2 - row * x, np.maximum(x, row)]
    wanted += [np.minimum(column, np.float32(0.25)) + x, np.where(x < row, x, column)]
    agree(y, [*wanted, np.where(~(x > 0) | (row >= 0) & (x != column), x, -x)])


def test_integers() -> None:
    a, b = RNG.integers(-(2**31), 2**31, (2, 6, 15), dtype=np.int32)
    b >>= RNG.integers(0, 31, b.shape, dtype=np.int32)
    y = gp.full((16, 6, 15), -77, "int32")
    run("integers", 1, gp.from_numpy(a), gp.from_numpy(b), y, 6, 15)
    d, long_a = np.where(b == 0, 1, b), a.astype(np.int64)
    quotient = np.trunc(a / d.astype(np.float64)).astype(np.int64).astype(np.int32)
    high = ((a * np.int32(70001)).astype(np.int64) * (b * np.int32(90001)) >> 32).astype(np.int32)
    wanted = [a + b, a - b, a * b, quotient, np.fmod(long_a, d), a & b, a | b, a ^ b, ~a, a << 3, a >> 2]
    wanted += [np.maximum(a, b), np.minimum(a, b), np.abs(a), high, (long_a % d != 0).astype(np.int32)]
    agree(y, wanted, 0)


def test_moves() -> None:
    x = uniform(8, 16)
    y = poisoned(7, 8, 16)
    run("moves", 3, gp.from_numpy(x), y)
    inserted = x.copy()
    inserted[6:8, 8:12] = 7
    half = x[4:]
    wanted = [x.T.reshape(8, 16), x.reshape(2, 4, 16).transpose(2, 0, 1).reshape(8, 16), np.concatenate([half, half])]
    wanted += [np.roll(x, 8, 1), inserted, -x, np.broadcast_to(np.arange(16) + 3, (8, 16))]
    agree(y, wanted, 0)


def test_reductions_and_scans() -> None:
    x = uniform(8, 16)
    n = (x * 8).astype(np.int32)
    down, along, scans = poisoned(6, 1, 16), poisoned(6, 8, 1), poisoned(3, 8, 16)
    run("reductions", 1, gp.from_numpy(x), down, along)
    wide = x.astype(np.float64)
    wanted = [wide.sum(0), wide.prod(0), x.max(0), x.min(0), np.bitwise_xor.reduce(n, 0), x.argmax(0)]
    agree(down, [one[None] for one in wanted], 1e-5)
    wanted = [wide.sum(1), x.argmin(1), (x > 1.5).any(1), (x < 1.5).all(1), np.bitwise_and.reduce(n, 1)]
    agree(along, [one[:, None] for one in (*wanted, np.bitwise_or.reduce(n, 1))], 1e-5)
    run("scans", 1, gp.from_numpy(x), scans)
    agree(scans, [wide.cumsum(0), wide.cumprod(1), wide[:, ::-1].cumsum(1)[:, ::-1]], 1e-5)


def test_casts() -> None:
    x = uniform(8, 16) * np.float32(100)
    x[0, 0] = 0.25
    y, n = poisoned(6, 8, 16), gp.full((2, 8, 16), -77, "int32")
    run("casts", 1, gp.from_numpy(x), y, n)
    small = [gp.from_numpy(x).astype(t).astype("float32").to_numpy() for t in ("float16", "bfloat16")]
    small += [gp.from_numpy(x).astype(t).astype("float32").to_numpy() for t in ("float8_e4m3", "float8_e5m2")]
    bits = x.view(np.uint32)
    tf32 = ((bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))) & np.uint32(0xFFFFE000)).view(np.float32)
    agree(y, [*small, tf32, 2 * x], 0)
    agree(n, [x.astype(np.int32), x != 0], 0)


def test_products() -> None:
    a, b = (RNG.integers(-4, 5, shape).astype(np.float32) for shape in ((16, 32), (32, 16)))  # exact in every type
    y = poisoned(9, 16, 16)
    run("products", 1, gp.from_numpy(a), gp.from_numpy(b), y)
    agree(y, [a @ b + 1] * 7 + [a @ b] * 2, 0)


def test_pointers() -> None:
    n, count = 11, 40
    x, places = uniform(count), RNG.permutation(count)[:n].astype(np.int32)
    gathered, padded, scattered = poisoned(20), poisoned(16), poisoned(count)
    counts = gp.zeros(3, "int32")
    run("pointers", 2, gp.from_numpy(x), gp.from_numpy(places), gathered, padded, scattered, counts, n)
    nothing = np.float32("nan")
    np.testing.assert_array_equal(gathered.to_numpy(), np.concatenate([x[places], np.full(9, nothing)]))
    chosen = np.full(16, np.float32(-5))
    chosen[:n:2] = x[places][::2]
    np.testing.assert_array_equal(padded.to_numpy(), chosen)
    wanted = np.full(count, nothing)
    wanted[places] = np.arange(n)
    np.testing.assert_array_equal(scattered.to_numpy(), wanted)
    assert counts.to_numpy().tolist() == [2 * 28, 2 * (8 + 9 + 10), 120]


def test_views_of_strides_and_stores_that_leave_their_neighbours() -> None:
    rows, columns, lead = 6, 13, 15
    x = uniform(8, lead)
    array, y = gp.from_numpy(x), poisoned(3, 8, 4)
    run("views", 1, array, y, rows, columns, lead)
    turned = np.full((8, 4), -np.inf, np.float32)
    turned[:5] = x[:4, 8:13].T
    sliding, left = np.zeros((2, 8, 4), np.float32)
    sliding[:5] = x[1:6, 6:10]
    left[:6] = x.ravel()[: rows * columns].reshape(columns, rows).T[:, 4:8]
    agree(y, [turned, sliding, left], 0)
    x[:rows, :8] += 100
    np.testing.assert_array_equal(array.to_numpy(), x)
