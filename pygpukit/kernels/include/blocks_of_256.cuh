// blocks_of_256.cuh: GGUF's blocks of 256 values, whose parts have scales of a few bits of their own.
#pragma once
#include "blocks_of_32.cuh"

namespace pk {

// Eight parts with a scale and a minimum value of six bits; Fifths: with a fifth bit for each code.
template <bool Fifths>
struct Eight {
  static constexpr int kValues = 256, kScales = 1, kBytes = 144 + 32 * Fifths;
  static constexpr bool kIsSigned = false, kHasMinimum = true, kIsFloat = false;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Byte *from = block + 16 + 16 * half + 4 * four;
      to[half] = read_32(from + 32 * Fifths + 32 * (s / 2)) >> 4 * (s % 2) & 0x0f0f0f0fu;
      if (Fifths) to[half] |= (read_32(from) >> s & 0x01010101u) << 4;
    }
  }
  static __device__ __forceinline__ void scales(const Byte *block, int s, Scales &to) {
    const unsigned low = read_32(block + 4), mid = read_32(block + 8), high = read_32(block + 12);
    const unsigned scales = s < 4 ? low & 0x3f3f3f3fu : (high & 0x0f0f0f0fu) | (low >> 2 & 0x30303030u);
    const unsigned minima = s < 4 ? mid & 0x3f3f3f3fu : (high >> 4 & 0x0f0f0f0fu) | (mid >> 2 & 0x30303030u);
    to.scale[0] = read_half(block) * static_cast<float>(scales >> 8 * (s % 4) & 255u);
    to.minimum[0] = read_half(block + 2) * static_cast<float>(minima >> 8 * (s % 4) & 255u);
  }
};
using Q4_K = Eight<false>;
using Q5_K = Eight<true>;

struct Q6_K {
  static constexpr int kValues = 256, kScales = 2, kBytes = 210;
  static constexpr bool kIsSigned = false, kHasMinimum = false, kIsFloat = false;
  static constexpr unsigned kOffset = 32;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Byte *from = block + 16 * half + 4 * four;
      const unsigned low = read_32_by_16(from + 64 * (s / 4) + 32 * (s % 2)) >> 4 * (s % 4 / 2) & 0x0f0f0f0fu;
      to[half] = low | (read_32_by_16(from + 128 + 32 * (s / 4)) >> 2 * (s % 4) & 0x03030303u) << 4;
    }
  }
  static __device__ __forceinline__ void scales(const Byte *block, int s, Scales &to) {
    const float all = read_half(block + 208);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      to.scale[half] = all * static_cast<float>(static_cast<signed char>(block[192 + 2 * s + half]));
  }
};

struct Q2_K {
  static constexpr int kValues = 256, kScales = 2, kBytes = 84;
  static constexpr bool kIsSigned = false, kHasMinimum = true, kIsFloat = false;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      to[half] = read_32(block + 16 + 32 * (s / 4) + 16 * half + 4 * four) >> 2 * (s % 4) & 0x03030303u;
  }
  static __device__ __forceinline__ void scales(const Byte *block, int s, Scales &to) {
    const float scale = read_half(block + 80), minimum = read_half(block + 82);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int both = block[2 * s + half];
      to.scale[half] = scale * static_cast<float>(both & 15),
      to.minimum[half] = minimum * static_cast<float>(both >> 4);
    }
  }
};

struct Q3_K {
  static constexpr int kValues = 256, kScales = 2, kBytes = 110;
  static constexpr bool kIsSigned = false, kHasMinimum = false, kIsFloat = false;
  static constexpr unsigned kOffset = 4;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Byte *from = block + 16 * half + 4 * four;
      to[half] = (read_32_by_16(from + 32 + 32 * (s / 4)) >> 2 * (s % 4) & 0x03030303u) |
                 (read_32_by_16(from) >> s & 0x01010101u) << 2;
    }
  }
  static __device__ __forceinline__ void scales(const Byte *block, int s, Scales &to) {
    const float all = read_half(block + 108);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = 2 * s + half, low = block[96 + i % 8] >> 4 * (i / 8) & 15, high = block[104 + i % 4] >> 2 * (i / 4);
      to.scale[half] = all * static_cast<float>((low | (high & 3) << 4) - 32);
    }
  }
};

struct IQ4_XS {
  static constexpr int kValues = 256, kScales = 1, kBytes = 136;
  static constexpr bool kIsSigned = true, kHasMinimum = false, kIsFloat = false;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int s, int four, unsigned (&to)[2]) {
    uneven(read_32(block + 8 + 16 * s + 4 * four), to);
  }
  static __device__ __forceinline__ void scales(const Byte *block, int s, Scales &to) {
    const int low = block[4 + s / 2] >> 4 * (s % 2) & 15, high = static_cast<int>(read_16(block + 2) >> 2 * s & 3u);
    to.scale[0] = read_half(block) * static_cast<float>((low | high << 4) - 32);
  }
};

}  // namespace pk
