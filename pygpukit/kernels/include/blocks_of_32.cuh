// blocks_of_32.cuh: GGUF's blocks of 32 values with one scale, and a minimum value where they end in _1.
#pragma once
#include "blocks.cuh"

namespace pk {

// The low and the high halves of 16 bytes; HasMinimum: with a minimum value; Fifths: with 32 fifth bits before the
// codes.
template <bool HasMinimum, bool Fifths>
struct Nibbles {
  static constexpr int kValues = 32, kScales = 1, kBytes = 18 + 2 * HasMinimum + 4 * Fifths;
  static constexpr bool kIsSigned = false, kHasMinimum = HasMinimum, kIsFloat = false;
  static constexpr unsigned kOffset = HasMinimum ? 0 : Fifths ? 16 : 8;

  static __device__ __forceinline__ void codes(const Byte *block, int, int four, unsigned (&to)[2]) {
    const Byte *after = block + 2 + 2 * HasMinimum;
    const unsigned packed = read_32_by_16(after + 4 * Fifths + 4 * four);
    to[0] = packed & 0x0f0f0f0fu, to[1] = packed >> 4 & 0x0f0f0f0fu;
    if (Fifths) {
      to[0] |= spread(read_16(after) >> 4 * four) << 4;
      to[1] |= spread(read_16(after + 2) >> 4 * four) << 4;
    }
  }
  static __device__ __forceinline__ void scales(const Byte *block, int, Scales &to) {
    to.scale[0] = read_half(block);
    if (HasMinimum) to.minimum[0] = -read_half(block + 2);
  }
};
using Q4_0 = Nibbles<false, false>;
using Q4_1 = Nibbles<true, false>;
using Q5_0 = Nibbles<false, true>;
using Q5_1 = Nibbles<true, true>;

struct Q8_0 {
  static constexpr int kValues = 32, kScales = 1, kBytes = 34;
  static constexpr bool kIsSigned = true, kHasMinimum = false, kIsFloat = false;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int, int four, unsigned (&to)[2]) {
    to[0] = read_32_by_16(block + 2 + 4 * four), to[1] = read_32_by_16(block + 18 + 4 * four);
  }
  static __device__ __forceinline__ void scales(const Byte *block, int, Scales &to) { to.scale[0] = read_half(block); }
};

// -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
__device__ __forceinline__ void uneven(unsigned packed, unsigned (&codes)[2]) {
  look_up({0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u}, packed, codes);
}

struct IQ4_NL {
  static constexpr int kValues = 32, kScales = 1, kBytes = 18;
  static constexpr bool kIsSigned = true, kHasMinimum = false, kIsFloat = false;
  static constexpr unsigned kOffset = 0;

  static __device__ __forceinline__ void codes(const Byte *block, int, int four, unsigned (&to)[2]) {
    uneven(read_32_by_16(block + 2 + 4 * four), to);
  }
  static __device__ __forceinline__ void scales(const Byte *block, int, Scales &to) { to.scale[0] = read_half(block); }
};

}  // namespace pk
