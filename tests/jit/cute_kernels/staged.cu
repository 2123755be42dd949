// staged.cu: a product by CuTe: operands by cp.async into two swizzled stages, from there by ldmatrix.
#include <cute/tensor.hpp>
#include <cutlass/numeric_types.h>
using namespace cute;

extern "C" __global__ void __launch_bounds__(128) staged(const half_t *a, const half_t *b, float *c, int m, int n, int k) {
  auto shape = Shape<_64, _64, _32>{};
  auto atom = composition(Swizzle<2, 3, 3>{}, Layout<Shape<_8, _32>, Stride<_32, _1>>{});
  auto stages = tile_to_shape(atom, Shape<_64, _32, _2>{});
  __shared__ alignas(128) half_t left_room[64 * 32 * 2], right_room[64 * 32 * 2];
  auto left = make_tensor(make_smem_ptr(left_room), stages), right = make_tensor(make_smem_ptr(right_room), stages);
  auto at = make_coord(blockIdx.y, blockIdx.x, _);
  auto from_a = local_tile(make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, _1{})), shape, at, Step<_1, X, _1>{});
  auto from_b = local_tile(make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(k, _1{})), shape, at, Step<X, _1, _1>{});
  auto load = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, half_t>{},
                              Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
  auto loader = load.get_slice(threadIdx.x);
  auto fetch = [&](int step, int stage) {
    copy(load, loader.partition_S(from_a(_, _, step)), loader.partition_D(left(_, _, stage)));
    copy(load, loader.partition_S(from_b(_, _, step)), loader.partition_D(right(_, _, stage)));
    cp_async_fence();
  };
  auto product = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
  auto mine = product.get_slice(threadIdx.x);
  auto to = mine.partition_C(
      local_tile(make_tensor(make_gmem_ptr(c), make_shape(m, n), make_stride(n, _1{})), shape, at, Step<_1, _1, X>{}));
  auto sums = product.make_fragment_C(to);
  clear(sums);
  auto x = mine.partition_fragment_A(left(_, _, 0));
  auto y = mine.partition_fragment_B(right(_, _, 0));
  auto load_x = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, product);
  auto load_y = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, product);
  auto slice_x = load_x.get_slice(threadIdx.x);
  auto slice_y = load_y.get_slice(threadIdx.x);
  int steps = size<2>(from_a);
  fetch(0, 0);
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) fetch(step + 1, (step + 1) % 2);
    else cp_async_fence();
    cp_async_wait<1>();
    __syncthreads();
    copy(load_x, slice_x.partition_S(left(_, _, step % 2)), slice_x.retile_D(x));
    copy(load_y, slice_y.partition_S(right(_, _, step % 2)), slice_y.retile_D(y));
    gemm(product, x, y, sums);
    __syncthreads();
  }
  copy(sums, to);
}
