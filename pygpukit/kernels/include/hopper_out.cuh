// hopper_out.cuh: what a warp writes of a product on SM 9.0 at a time, and sums rounded two at a time.
#pragma once
#include "hopper_products.cuh"

namespace pk {

namespace h = hopper;

constexpr int kLineOut = 256, kRowsOut = 16;  // bytes and rows that a warp writes at a time
constexpr int kPitchOut = kLineOut + 16;      // bytes from one of these rows to the next: eight lie in different banks
constexpr int kBytesOut = kPitchOut * kRowsOut;

// Two numbers rounded to 16 bits, the first in the low half.
__device__ __forceinline__ unsigned two_rounded(half_t, float first, float second) {
  unsigned two;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(second), "f"(first));
  return two;
}
__device__ __forceinline__ unsigned two_rounded(bfloat16_t, float first, float second) {
  unsigned two;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(second), "f"(first));
  return two;
}

}  // namespace pk
