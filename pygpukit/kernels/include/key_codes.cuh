// key_codes.cuh: keys and values of a cache in fp8: codes of E4M3, and a scale for each head of each position.
//
// The scale is a power of two, so that what a code stands for is exact in every type of 16 bits, and a factor of a
// score or of a weight as well. It is chosen by the position's own elements alone: no bits depend on when, or beside
// what, a position is written.
#pragma once
#include "rows.cuh"
#include "storage.cuh"

namespace pk {

constexpr unsigned kNoNumber = 0xff;      // the scale of a head with an element that is infinite or NaN
constexpr unsigned kMinScale = 127 - 15;  // as a float's exponent: the least code is float16's least number then

// A power of two by its exponent, as a float has it.
__device__ __forceinline__ float scale_of(unsigned exponent) {
  return __uint_as_float(exponent == kNoNumber ? 0x7fc00000u : exponent << 23);
}

// Of the least scale by which no element is larger than 448, the largest code. largest: the bits of the largest one.
__device__ __forceinline__ unsigned exponent_for(unsigned largest) {
  if (largest >= 0x7f800000u) return kNoNumber;
  const int exponent = static_cast<int>(largest >> 23) - 8 + ((largest & 0x7fffffu) > 0x600000u);
  return exponent < static_cast<int>(kMinScale) ? kMinScale : static_cast<unsigned>(exponent);
}

// Codes and scale of a head whose elements lie in shared memory, by a warp, whose threads wrote them. The elements
// become what the codes stand for. writes: whether codes and scale go to memory, too.
__device__ __forceinline__ void encode_head(float *elements, long long dim, bool writes, e4m3_t *codes,
                                            unsigned char *scale) {
  const int lane = threadIdx.x % 32;
  __syncwarp();
  unsigned largest = 0;
  for (long long i = lane; i < dim; i += 32) {
    const unsigned size = __float_as_uint(elements[i]) & 0x7fffffffu;
    largest = size > largest ? size : largest;
  }
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const unsigned other = __shfl_xor_sync(0xffffffffu, largest, lanes);
    largest = other > largest ? other : largest;
  }
  const unsigned exponent = exponent_for(largest);
  const float factor = scale_of(exponent);
  const float inverse = exponent == kNoNumber ? 0.0f : __uint_as_float((254u - exponent) << 23);
  for (long long i = lane; i < dim; i += 32) {
    const e4m3_t code = to_small_float<e4m3_t>(elements[i] * inverse);
    elements[i] = widen(code) * factor;
    if (writes) codes[i] = code;
  }
  if (writes && lane == 0) *scale = static_cast<unsigned char>(exponent);
}

// Numbers of codes none of which is NaN. Each becomes a float with its exponent, subnormal or not; the product, exact,
// puts the bias right.
template <int N>
__device__ __forceinline__ void widen_pack(const Pack<e4m3_t, N> &pack, float (&values)[N]) {
  const float bias = __uint_as_float((254u - e4m3_t::kBias) << 23);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const unsigned code = pack.v[j].bits;
    values[j] = __uint_as_float((code & 0x80u) << 24 | (code & 0x7fu) << 20) * bias;
  }
}

}  // namespace pk
