// copies.cu: arrays moved by CuTe: partitions, tiled copies, cp.async, predicates, a swizzled tile.
#include <cute/tensor.hpp>
using namespace cute;

template <int M, int N>
__device__ auto matrix(const float *p, int m, int n) {
  return local_tile(make_tensor(make_gmem_ptr(p), make_shape(m, n), make_stride(n, _1{})), Shape<Int<M>, Int<N>>{},
                    make_coord(blockIdx.y, blockIdx.x));
}
template <int M, int N>
__device__ auto matrix(float *p, int m, int n) {
  return local_tile(make_tensor(make_gmem_ptr(p), make_shape(m, n), make_stride(n, _1{})), Shape<Int<M>, Int<N>>{},
                    make_coord(blockIdx.y, blockIdx.x));
}

extern "C" __global__ void axpy(float factor, const float *x, float *y, int n) {  // n a multiple of 256
  auto tile = [&](auto p) { return local_tile(make_tensor(make_gmem_ptr(p), n), Shape<_256>{}, blockIdx.x); };
  auto threads = Layout<_64>{};
  auto mine = local_partition(tile(x), threads, threadIdx.x);
  auto own = local_partition(tile(y), threads, threadIdx.x);
  axpby(factor, mine, 1.0f, own);
}

extern "C" __global__ void tiled(const float *x, float *y, int m, int n) {  // m, n multiples of 32
  auto copy_tile = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Shape<_16, _8>, Stride<_8, _1>>{},
                                   Layout<Shape<_1, _4>>{});
  auto mine = copy_tile.get_slice(threadIdx.x);
  auto from = mine.partition_S(matrix<32, 32>(x, m, n));
  auto to = mine.partition_D(matrix<32, 32>(y, m, n));
  auto registers = make_fragment_like(to);
  copy(copy_tile, from, registers);
  for (int i = 0; i < size(registers); ++i) registers(i) = 2.0f * registers(i) + 1.0f;
  copy(copy_tile, registers, to);
}

extern "C" __global__ void odd(const float *x, float *y, int m, int n) {  // any m and n
  auto threads = Layout<Shape<_8, _16>, Stride<_16, _1>>{};
  auto from = local_partition(matrix<16, 32>(x, m, n), threads, threadIdx.x);
  auto to = local_partition(matrix<16, 32>(y, m, n), threads, threadIdx.x);
  auto places = local_tile(make_identity_tensor(make_shape(m, n)), Shape<_16, _32>{}, make_coord(blockIdx.y, blockIdx.x));
  auto mine = local_partition(places, threads, threadIdx.x);
  auto inside = make_tensor<bool>(shape(from));
  for (int i = 0; i < size(inside); ++i) inside(i) = elem_less(mine(i), make_coord(m, n));
  copy_if(inside, from, to);
}

template <class Shared>
__device__ void turned(const float *x, float *y, int m, int n, Shared layout) {
  __shared__ alignas(16) float room[cosize_v<Shared>];
  auto tile = make_tensor(make_smem_ptr(room), layout);  // 32 x 32
  auto copy_tile = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<float>, float>{},
                                   Layout<Shape<_4, _32>, Stride<_32, _1>>{}, Layout<Shape<_1, _1>>{});
  auto mine = copy_tile.get_slice(threadIdx.x);
  copy(copy_tile, mine.partition_S(matrix<32, 32>(x, m, n)), mine.partition_D(tile));
  cp_async_fence();
  cp_async_wait<0>();
  __syncthreads();
  auto back = make_tensor(make_gmem_ptr(y), make_shape(n, m), make_stride(m, _1{}));
  auto to = local_tile(back, Shape<_32, _32>{}, make_coord(blockIdx.x, blockIdx.y));
  auto across = make_tensor(make_smem_ptr(room), composition(layout, make_layout(Shape<_32, _32>{}, GenRowMajor{})));
  auto threads = Layout<Shape<_4, _32>, Stride<_32, _1>>{};
  copy(local_partition(across, threads, threadIdx.x), local_partition(to, threads, threadIdx.x));
}
extern "C" __global__ void transposed(const float *x, float *y, int m, int n) {
  turned(x, y, m, n, composition(Swizzle<5, 0, 5>{}, Layout<Shape<_32, _32>, Stride<_32, _1>>{}));
}

extern "C" __global__ void asynchronous(const float *x, float *y, int m, int n) {  // 16 bytes a thread
  __shared__ alignas(16) float room[32 * 32];
  auto tile = make_tensor(make_smem_ptr(room), Layout<Shape<_32, _32>, Stride<_32, _1>>{});
  auto copy_tile = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, float>{},
                                   Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _4>>{});
  auto mine = copy_tile.get_slice(threadIdx.x);
  copy(copy_tile, mine.partition_S(matrix<32, 32>(x, m, n)), mine.partition_D(tile));
  cp_async_fence();
  cp_async_wait<0>();
  __syncthreads();
  auto to = mine.partition_D(matrix<32, 32>(y, m, n));
  auto own = mine.partition_D(tile);
  for (int i = 0; i < size(to); ++i) to(i) = -own(i);
}
