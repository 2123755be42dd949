// blocks_of_folders.cuh: blocks that weights of folders become when they are loaded, since there codes and scales lie
// in tensors of their own (models/quantised/blocks.py). Codes are in the file's order, but for those of four bits.
#pragma once
#include "blocks_of_32.cuh"

namespace pk {

__device__ __forceinline__ float read_float(const Byte *from) { return __uint_as_float(read_32(from)); }

// A float, then codes of eight bits: int8, or E4M3.
template <int Values, bool Float>
struct Bytes {
  static constexpr int kValues = Values, kScales = 1, kBytes = 4 + Values;
  static constexpr bool kIsSigned = true, kHasMinimum = false, kIsFloat = Float;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
    const Byte *from = block + 4 + 32 * s + 4 * four;
    to[0] = read_32(from), to[1] = read_32(from + 16);
  }
  static __device__ __forceinline__ void scales(const Byte *block, int, Scales &to) { to.scale[0] = read_float(block); }
};
using I8_32 = Bytes<32, false>;
using I8_128 = Bytes<128, false>;
using FP8_32 = Bytes<32, true>;
using FP8_128 = Bytes<128, true>;

// 23 bits of a float, and in the lowest 9 the code of zero with its sign; then int8 codes. Exact, as those of four
// bits.
template <int Values>
struct BytesWithZeros {
  static constexpr int kValues = Values, kScales = 1, kBytes = 4 + Values;
  static constexpr bool kIsSigned = true, kHasMinimum = true, kIsFloat = false;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
    Bytes<Values, false>::codes(block, s, four, to);
  }
  static __device__ __forceinline__ void scales(const Byte *block, int, Scales &to) {
    const unsigned both = read_32(block);
    to.scale[0] = __uint_as_float(both & 0xfffffe00u);
    to.minimum[0] = to.scale[0] * static_cast<float>(static_cast<int>(both << 23) >> 23);
  }
};
using I8Z_32 = BytesWithZeros<32>;
using I8Z_128 = BytesWithZeros<128>;

// 24 bits of a float, and in the lowest 8 the code of zero; then codes of four bits, of each 32 as Q4_0 has them.
// Scales of 16 bits are whole in 24, and their products with codes exact: scale * code - scale * zero is (code - zero)
// * scale.
template <int Values>
struct Fours {
  static constexpr int kValues = Values, kScales = 1, kBytes = 4 + Values / 2;
  static constexpr bool kIsSigned = false, kHasMinimum = true, kIsFloat = false;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
    const unsigned packed = read_32(block + 4 + 16 * s + 4 * four);
    to[0] = packed & 0x0f0f0f0fu, to[1] = packed >> 4 & 0x0f0f0f0fu;
  }
  static __device__ __forceinline__ void scales(const Byte *block, int, Scales &to) {
    const unsigned both = read_32(block);
    to.scale[0] = __uint_as_float(both & 0xffffff00u);
    to.minimum[0] = to.scale[0] * static_cast<float>(both & 255u);
  }
};
using I4_32 = Fours<32>;
using I4_128 = Fours<128>;

// 32 numbers of fp4, of which a lane has two bytes and those 8 further: as int8, twice as large.
__device__ __forceinline__ void doubled_fp4(const Byte *from, unsigned (&codes)[2]) {
  look_up_in_order({0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu}, read_16(from) | read_16(from + 8) << 16,
                   codes);
}

// A division for divisors so large or small that Markstein's theorem does not hold: apart, since it is long and rare.
__device__ __noinline__ float quotient_of_any(float a, float b) { return __fdiv_rn(a, b); }

// A scale of all, E4M3 scales of 16 values each, and 64 bytes of fp4. A negative scale of all is divided by.
struct NVFP4 {
  static constexpr int kValues = 128, kScales = 2, kBytes = 76;
  static constexpr bool kIsSigned = true, kHasMinimum = false, kIsFloat = false;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
    doubled_fp4(block + 12 + 16 * s + 2 * four, to);
  }
  static __device__ __forceinline__ void scales(const Byte *block, int s, Scales &to) {
    const float all = read_float(block), divisor = fabsf(all);
    float own[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned code = block[4 + 2 * s + half], number = (code & 127u) << 20 | (code & 128u) << 24;
      own[half] = 0x1p120f * __uint_as_float((code & 127u) == 127u ? 0x7fc00000u : number);
    }
    if (all >= 0.0f) {
#pragma unroll
      for (int half = 0; half < 2; ++half) to.scale[half] = 0.5f * (own[half] * all);
    } else if (divisor > 0x1p-100f && divisor < 0x1p100f) {
      const float inverse = __frcp_rn(divisor);
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // a quotient rounded once, as Markstein's theorem has it
        const float near = own[half] * inverse;
        to.scale[half] = 0.5f * fmaf(fmaf(-near, divisor, own[half]), inverse, near);
      }
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) to.scale[half] = 0.5f * quotient_of_any(own[half], divisor);
    }
  }
};

// Exponents of 32 values each, and 64 bytes of fp4.
struct MXFP4 {
  static constexpr int kValues = 128, kScales = 1, kBytes = 68;
  static constexpr bool kIsSigned = true, kHasMinimum = false, kIsFloat = false;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
    doubled_fp4(block + 4 + 16 * s + 2 * four, to);
  }
  static __device__ __forceinline__ void scales(const Byte *block, int s, Scales &to) {
    const unsigned exponent = block[s];
    to.scale[0] = 0.5f * (exponent == 255u ? __uint_as_float(0x7fc00000u)
                          : exponent       ? __uint_as_float(exponent << 23)
                                           : __uint_as_float(0x400000u));
  }
};

}  // namespace pk
