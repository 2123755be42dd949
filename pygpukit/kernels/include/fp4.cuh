// fp4.cuh: matrices of OCP's fp4 (E2M1), two numbers a byte, the first in the low bits, with a scale for every block of
// a row: NVFP4 has blocks of 16 with E4M3 scales and one float for all, MXFP4 blocks of 32 with powers of two (E8M0).
#pragma once
#include "storage.cuh"

namespace pk {

struct e8m0_t {
  unsigned char bits;  // 2^(bits - 127); 255 is NaN
};

__device__ __forceinline__ float widen(e8m0_t value) {
  if (value.bits == 255) return __uint_as_float(0x7fc00000u);
  return __uint_as_float(value.bits ? static_cast<unsigned>(value.bits) << 23 : 0x400000u);
}

}  // namespace pk
