// mma_sim.cuh: the functions of mma.cuh on the simulated device. Lanes ask each other for their registers; sums are in
// float32, in ascending order of k; a device sums in its own order.
#pragma once

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
__device__ inline void load_matrices(Pair (&to)[4], const void *row) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / 4, four = lane % 4;
  for (int i = 0; i < 4; ++i) {
    unsigned short elements[2];
    for (int j = 0; j < 2; ++j) {
      const unsigned long long from =
          __shfl_sync(0xffffffffu, reinterpret_cast<unsigned long long>(row), 8 * i + (Turned ? 2 * four + j : group));
      elements[j] = reinterpret_cast<const unsigned short *>(from)[Turned ? group : 2 * four + j];
    }
    to[i] = elements[0] | static_cast<Pair>(elements[1]) << 16;
  }
}

__device__ __forceinline__ unsigned to_tf32(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & ~0x1fffu;
}

template <class T>
__device__ inline void mma(T kind, float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / 4, four = lane % 4;
  for (int further = 0; further < 2; ++further) {
    for (int holder = 0; holder < 4; ++holder) {
      Pair row[2], column[2];
      for (int i = 0; i < 2; ++i) {
        row[i] = __shfl_sync(0xffffffffu, a[2 * further + i], 4 * group + holder);
        column[i] = __shfl_sync(0xffffffffu, b[further], 4 * (2 * four + i) + holder);
      }
      for (int k = 0; k < 2; ++k)
        for (int i = 0; i < 4; ++i) c[i] = fmaf(half_of(kind, row[i / 2], k), half_of(kind, column[i % 2], k), c[i]);
    }
  }
}

__device__ inline void mma(float, float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / 4, four = lane % 4;
  for (int further = 0; further < 2; ++further) {
    for (int holder = 0; holder < 4; ++holder) {
      float row[2], column[2];
      for (int i = 0; i < 2; ++i) {
        row[i] = __uint_as_float(__shfl_sync(0xffffffffu, a[2 * further + i], 4 * group + holder));
        column[i] = __uint_as_float(__shfl_sync(0xffffffffu, b[further], 4 * (2 * four + i) + holder));
      }
      for (int i = 0; i < 4; ++i) c[i] = fmaf(row[i / 2], column[i % 2], c[i]);
    }
  }
}

}  // namespace pk
