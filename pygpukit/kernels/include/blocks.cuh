// blocks.cuh: weights in blocks of few bits, as files store them: what every kind of block gives, and what is made of
// it.
//
// A kind reads 32 values of a block at a time, its part `s`; four lanes share them. Lane `four` gets values 4 four to
// 4 four + 3, and those 16 further, as the bytes of two words: codes without sign, of which kOffset is 0, or int8 where
// kIsSigned, or E4M3 where kIsFloat, too. A value is scale * code - minimum; kScales: one of each for all 32, or one
// for each half.
#pragma once
#include "mma.cuh"

namespace pk {

using Byte = unsigned char;

struct Scales {
  float scale[2], minimum[2];
};

__device__ __forceinline__ unsigned read_16(const Byte *from) {
  return *reinterpret_cast<const unsigned short *>(from);
}
// Four bytes, at a multiple of 2.
__device__ __forceinline__ unsigned read_32_by_16(const Byte *from) { return read_16(from) | read_16(from + 2) << 16; }
// At a multiple of 4.
__device__ __forceinline__ unsigned read_32(const Byte *from) { return *reinterpret_cast<const unsigned *>(from); }
__device__ __forceinline__ float read_half(const Byte *from) { return widen(*reinterpret_cast<const half_t *>(from)); }

// Four codes as two pairs of bfloat16, in their order. Exact: a number with the code in its mantissa, less the number
// without.
template <class Kind>
__device__ __forceinline__ void to_pairs(unsigned codes, Pair (&to)[2]) {
  constexpr Pair kOne = 0x3f803f80u;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    Pair with, without, factor = kOne;
    if (Kind::kIsFloat || Kind::kIsSigned) {
      const unsigned two = __byte_perm(codes, 0u, i ? 0x4342u : 0x4140u);
      if (Kind::kIsFloat) {  // with an exponent that is less by 120
        with = (two & 0x007f007fu) << 4 | (two & 0x00800080u) << 8;
        without = 0x80008000u;
        factor = 0x7b807b80u;
      } else {  // 128 and 7 bits, less 128 or 256
        with = (two & 0x007f007fu) | 0x43004300u;
        without = (two & 0x00800080u) | 0xc300c300u;
      }
    } else {
      with = __byte_perm(codes, 0x43434343u, i ? 0x4342u : 0x4140u);
      without = 0xc300c300u + Kind::kOffset * 0x00010001u;
    }
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(to[i]) : "r"(with), "r"(factor), "r"(without));
  }
}

// Code `place` of a word.
template <class Kind>
__device__ __forceinline__ float code_at(unsigned codes, int place) {
  const unsigned byte = codes >> 8 * place & 255u;
  if (Kind::kIsFloat) return widen(e4m3_t{static_cast<unsigned char>(byte)});
  return static_cast<float>(Kind::kIsSigned ? static_cast<int>(static_cast<signed char>(byte))
                                            : static_cast<int>(byte) - static_cast<int>(Kind::kOffset));
}

// Four bits, spread over the lowest bits of four bytes.
__device__ __forceinline__ unsigned spread(unsigned bits) { return (bits & 15u) * 0x00204081u & 0x01010101u; }

// Sixteen codes of int8 by number, for the halves of four bytes: low, high, low, high of two bytes, then of two.
__device__ __forceinline__ void look_up_in_order(const unsigned (&table)[4], unsigned packed, unsigned (&codes)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const unsigned numbers = packed >> 16 * i & 0xffffu, place = numbers & 0x7777u;
    codes[i] = __byte_perm(__byte_perm(table[0], table[1], place), __byte_perm(table[2], table[3], place),
                           0x3210u | (numbers & 0x8888u) >> 1);
  }
}
// Low halves, then high ones.
__device__ __forceinline__ void look_up(const unsigned (&table)[4], unsigned packed, unsigned (&codes)[2]) {
  unsigned halves[2];
  look_up_in_order(table, packed, halves);
  codes[0] = __byte_perm(halves[0], halves[1], 0x6420u);
  codes[1] = __byte_perm(halves[0], halves[1], 0x7531u);
}

}  // namespace pk
