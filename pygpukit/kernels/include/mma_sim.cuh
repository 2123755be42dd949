// mma_sim.cuh: the functions of mma.cuh on the simulated device, which has the matrix instructions as functions. Sums
// are in float32, in ascending order of k; a device sums in its own order.
#pragma once
#include <pk_sim_mma.h>

namespace pk {

__device__ __forceinline__ float half_of(bfloat16_t, Pair pair, int which) {
  return widen(bfloat16_t{static_cast<unsigned short>(pair >> 16 * which)});
}
__device__ __forceinline__ float half_of(half_t, Pair pair, int which) {
  return widen(half_t{static_cast<unsigned short>(pair >> 16 * which)});
}

template <class T>
__device__ __forceinline__ Pair multiply(T kind, Pair x, Pair y) {
  Pair result = 0;
  for (int i = 0; i < 2; ++i)
    result |= static_cast<Pair>(convert<T>::from(half_of(kind, x, i) * half_of(kind, y, i)).bits) << 16 * i;
  return result;
}

template <bool Turned>
__device__ __forceinline__ void load_matrices(Pair (&to)[4], const void *row) {
  pk_sim_ldmatrix<4, Turned>(to, row, __FILE__, __LINE__);
}

__device__ __forceinline__ unsigned to_tf32(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & ~0x1fffu;
}

template <int K, class Type>
__device__ __forceinline__ void product_of(float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  pk_sim_mma<16, 8, K, pk_sim_mma_f32, Type, Type, pk_sim_mma_f32, PK_SIM_MMA_ROW, PK_SIM_MMA_COL, PK_SIM_MMA_PLAIN>(
      c, a, b, c, __FILE__, __LINE__);
}
__device__ __forceinline__ void mma(bfloat16_t, float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  product_of<16, pk_sim_mma_bf16>(c, a, b);
}
__device__ __forceinline__ void mma(half_t, float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  product_of<16, pk_sim_mma_f16>(c, a, b);
}
__device__ __forceinline__ void mma(float, float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  product_of<8, pk_sim_mma_tf32>(c, a, b);
}

}  // namespace pk
