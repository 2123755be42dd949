// tiled_codes.cuh: codes of 16 rows and 256 of k as the lanes of a warp take them, packs of 16 bytes side by side.
//
// group = lane / 4 and four = lane % 4, as in mma.cuh. Of each slice of 16 codes, number `slice` of 16, a lane has
// four of row `group` and four of row group + 8: what mma() takes as a. last() is the last slice with codes in a
// pack. fragment() makes them numbers of bfloat16 that are kOffset above the codes; put() is how they got there, from
// the bytes of four neighbours.
#pragma once
#include "blocks_of_256.cuh"
#include "blocks_of_folders.cuh"

namespace pk {

constexpr int kSlices = 16;

__device__ __forceinline__ Pair scaled_pair(Pair value, Pair factor) { return multiply(bfloat16_t{}, value, factor); }

// (word & mask) | with, by one instruction; a compiler takes two where both are constants.
__device__ __forceinline__ Pair masked(unsigned word, unsigned mask, unsigned with) {
  Pair result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "r"(mask), "r"(with));
  return result;
}

// Four bits a code. Word 2 (slice / 2) + row: the even ones of eight in its low half, the odd ones in its high half.
struct NibbleCodes {
  static constexpr int kPieces = 4, kOffset = 16;
  static __device__ constexpr int last(int piece) { return 4 * piece + 3; }

  static __device__ __forceinline__ void fragment(const unsigned (&words)[4 * kPieces], int slice, Pair (&a)[4]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const unsigned word = words[2 * (slice / 2) + row];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int shift = 8 * (slice % 2) + 4 * i - 3;  // to the upper four of seven bits of a mantissa
        a[2 * i + row] = masked(shift < 0 ? word << -shift : word >> shift, 0x00780078u, 0x41804180u);
      }
    }
  }
  static __device__ __forceinline__ void put(unsigned (&words)[4 * kPieces], int slice, int row, unsigned codes) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[2 * (slice / 2) + row] |= (codes >> 8 * i & 15u) << (16 * (i % 2) + 8 * (slice % 2) + 4 * (i / 2));
  }
};

// Numbers of fp4, 0 to 6 with a sign: three of four lie so that one shift brings them where bfloat16 has exponent and
// mantissa.
struct Fp4Codes {
  static constexpr int kPieces = 4, kOffset = 0;
  static __device__ constexpr int last(int piece) { return 4 * piece + 3; }

  static __device__ __forceinline__ void fragment(const unsigned (&words)[4 * kPieces], int slice, Pair (&a)[4]) {
    constexpr Pair kMask = 0x81c081c0u, kUp = 0x7e807e80u;  // 2^126: exponents of fp4 are less by that
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const unsigned word = words[2 * (slice / 2) + row];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int place = 2 * (slice % 2) + i;
        const Pair small = place < 3
                               ? word << 3 * place & kMask
                               : (word << 1 & 0x80008000u) | (word >> 5 & 0x01000100u) | (word >> 4 & 0x00c000c0u);
        a[2 * i + row] = scaled_pair(small, kUp);
      }
    }
  }
  static __device__ __forceinline__ void put(unsigned (&words)[4 * kPieces], int slice, int row, unsigned codes) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned code = codes >> 8 * i & 15u, sign = code >> 3, number = code & 7u;
      const int place = 2 * (slice % 2) + i / 2;
      const unsigned half =
          place < 3 ? (sign << 15 | number << 6) >> 3 * place : sign << 14 | (number >> 2) << 13 | (number & 3u) << 10;
      words[2 * (slice / 2) + row] |= half << 16 * (i % 2);
    }
  }
};

// Six bits a code: four as above, and two of both rows in word slice / 2 of two more packs.
struct SixCodes {
  static constexpr int kPieces = 6, kOffset = 64;
  static __device__ constexpr int last(int piece) { return piece < 4 ? 4 * piece + 3 : 8 * piece - 25; }

  static __device__ __forceinline__ void fragment(const unsigned (&words)[4 * kPieces], int slice, Pair (&a)[4]) {
    const unsigned upper = words[16 + slice / 2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const unsigned word = words[2 * (slice / 2) + row];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int low = 8 * (slice % 2) + 4 * i - 1, high = 8 * row + 4 * (slice % 2) + 2 * i - 5;
        const Pair four = masked(low < 0 ? word << -low : word >> low, 0x001e001eu, 0x42804280u);
        a[2 * i + row] = masked(high < 0 ? upper << -high : upper >> high, 0x00600060u, four);
      }
    }
  }
  static __device__ __forceinline__ void put(unsigned (&words)[4 * kPieces], int slice, int row, unsigned codes) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned code = codes >> 8 * i & 63u;
      words[2 * (slice / 2) + row] |= (code & 15u) << (16 * (i % 2) + 8 * (slice % 2) + 4 * (i / 2));
      words[16 + slice / 2] |= (code >> 4) << (16 * (i % 2) + 8 * row + 4 * (slice % 2) + 2 * (i / 2));
    }
  }
};

// Eight bits, int8 or E4M3. Word 2 slice + row: codes 0, 2, 1, 3.
template <bool kIsFloat>
struct ByteCodes {
  static constexpr int kPieces = 8, kOffset = 0;
  static __device__ constexpr int last(int piece) { return 2 * piece + 1; }

  static __device__ __forceinline__ void fragment(const unsigned (&words)[4 * kPieces], int slice, Pair (&a)[4]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const unsigned word = words[2 * slice + row];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (kIsFloat) {  // with an exponent that is less by 120
          const unsigned high = i ? word : word << 8, low = i ? word >> 4 : word << 4;
          const Pair small = masked(high, 0x80008000u, low & 0x07f007f0u);
          a[2 * i + row] = scaled_pair(small, 0x7b807b80u);
        } else {  // 128 and 7 bits, less 128 or 256
          const unsigned two = i ? word >> 8 : word;
          asm("fma.rn.bf16x2 %0, %1, %2, %3;"
              : "=r"(a[2 * i + row])
              : "r"(masked(two, 0x007f007fu, 0x43004300u)), "r"(0x3f803f80u),
                "r"(masked(two, 0x00800080u, 0xc300c300u)));
        }
      }
    }
  }
  static __device__ __forceinline__ void put(unsigned (&words)[4 * kPieces], int slice, int row, unsigned codes) {
    words[2 * slice + row] = __byte_perm(codes, 0u, 0x3120u);
  }
};

}  // namespace pk
