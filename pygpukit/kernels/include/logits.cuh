// logits.cuh: the order of logits, and of tokens by it.
#pragma once
#include "numeric.cuh"

namespace pk {
namespace sampling {

using u64 = unsigned long long;

// Unsigned numbers in the order of floats; -0 and 0 are one.
__device__ __forceinline__ unsigned key_of(float z) {
  const unsigned bits = __float_as_uint(z == 0.0f ? 0.0f : z);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float value_of(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// A logit and its token as one number: the larger logit, then the smaller token, is the larger number. A logit that is no
// number comes last.
__device__ __forceinline__ u64 ordered(float logit, long long token) {
  const float number = logit == logit ? logit : -__uint_as_float(0x7f800000u);
  return static_cast<u64>(key_of(number)) << 32 | static_cast<unsigned>(~static_cast<unsigned>(token));
}
__device__ __forceinline__ long long token_of(u64 ordered) { return ~static_cast<unsigned>(ordered); }

}  // namespace sampling
}  // namespace pk
