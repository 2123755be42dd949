// quads.cuh: products of elements taken four at a time: four quads are a step of the tensor cores, each of a lane.
#pragma once
#include "mma.cuh"
#include "pack.cuh"

namespace pk {

constexpr int kQuad = 4;  // elements

template <class T>
struct alignas(4 * sizeof(T)) Quad {
  unsigned v[sizeof(T)];
};

__device__ __forceinline__ unsigned factor(half_t value) { return value.bits; }
__device__ __forceinline__ unsigned factor(bfloat16_t value) { return value.bits; }
__device__ __forceinline__ unsigned factor(float value) { return to_tf32(value); }

template <class T>
__device__ __forceinline__ Quad<T> quad_of(const Pack<T, kQuad> &values) {
  Quad<T> rounded_quad;
  constexpr int kEach = 4 / sizeof(T);
#pragma unroll
  for (int i = 0; i < kQuad / kEach; ++i)
    rounded_quad.v[i] =
        kEach == 1 ? factor(values.v[i]) : factor(values.v[kEach * i]) | factor(values.v[kEach * i + kEach - 1]) << 16;
  return rounded_quad;
}

// Dense: quads are whole and lie as one in memory.
template <bool Dense, class T>
__device__ __forceinline__ Quad<T> read_quad(const T *at, long long apart, int left) {
  Pack<T, kQuad> values{};
  if constexpr (Dense) {
    values = load<kQuad>(at);
  } else {
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      if (i < left) values.v[i] = at[i * apart];
    }
  }
  return quad_of(values);
}

// c += the products of two rows' quads with those of a filter.
template <class T>
__device__ __forceinline__ void add_quads(float (&c)[4], const Quad<T> &first, const Quad<T> &second,
                                          const Quad<T> &taken) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T)); i += 2) {
    const Pair a[4] = {first.v[i], second.v[i], first.v[i + 1], second.v[i + 1]}, b[2] = {taken.v[i], taken.v[i + 1]};
    mma(T{}, c, a, b);
  }
}

}  // namespace pk
