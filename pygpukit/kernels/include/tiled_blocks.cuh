// tiled_blocks.cuh: blocks of few bits by tiles of 16 rows and 256 of k: their codes, then their scales.
//
// A group of kGroup values has a scale. Slice q of codes is of values 16 q to 16 q + 15 where groups are of 16, else
// those of values 32 (q / 2) on of which a lane has 8 four to 8 four + 7, four in each slice. Of a part of eight
// groups, all of a unit or half of it, lane `four` owns groups 2 four and 2 four + 1: kOwn bytes are scales of these in
// two rows, kShared bytes are of all lanes of `group`. A value is scale * code - minimum.
#pragma once
#include "tiled_codes.cuh"

namespace pk {

// The byte of a word as a number.
__device__ __forceinline__ float byte_of(unsigned word, int place) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7650u | place)) - 8388608.0f;
}
__device__ __forceinline__ float half_of(unsigned word, int place) {
  half_t value;
  value.bits = static_cast<unsigned short>(word >> 16 * place);
  return widen(value);
}

struct Scaled {
  float scale, minimum;
};

template <class Kind>
struct Tiled;

// Scales and minima of groups 2 four and 2 four + 1 of a part, in two rows.
template <class Of>
__device__ __forceinline__ void each_scale(const unsigned *own, const unsigned *shared, int part, int four,
                                           Scaled (&to)[2][2]) {
#pragma unroll
  for (int row = 0; row < 2; ++row)
#pragma unroll
    for (int number = 0; number < 2; ++number) to[row][number] = Of::scale(own, shared, part, row, number, four);
}

// Where a block of 32 or 128 begins with its scale, in two or four bytes.
template <class Kind, class Codes, int kHead>
struct HeadScales : Codes {
  static constexpr int kGroup = 32, kOwn = Kind::kValues == 32 ? 4 * kHead : 0;
  static constexpr int kShared = Kind::kValues == 128 ? 16 : 0;
  static constexpr int kBias = Codes::kOffset + static_cast<int>(Kind::kOffset);
  static constexpr bool kHasMinimum = Kind::kHasMinimum;
  static_assert(Kind::kValues == 32 || kHead == 4, "only heads of four bytes have blocks of 128");

  static __device__ __forceinline__ Scaled scale(const unsigned *own, const unsigned *shared, int, int row, int number,
                                                 int four) {
    unsigned head;
    if (Kind::kValues == 128)
      head = four / 2 ? shared[2 + row] : shared[row];
    else if (kHead == 4)
      head = own[2 * row + number];
    else
      head = own[row] >> 16 * number;
    Scales of;
    Kind::scales(reinterpret_cast<const Byte *>(&head), 0, of);
    return {of.scale[0], kHasMinimum ? of.minimum[0] : 0.0f};
  }
  static __device__ __forceinline__ void scales(const unsigned *own, const unsigned *shared, int part, int four,
                                                Scaled (&to)[2][2]) {
    each_scale<HeadScales>(own, shared, part, four, to);
  }
  static __device__ __forceinline__ void put_scales(const Byte *blocks, int row, int four, unsigned *own,
                                                    unsigned *shared) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Byte *const from = blocks + (Kind::kValues == 128 ? i : 2 * four + i) * Kind::kBytes;
      const unsigned head = kHead == 4 ? read_32(from) : read_16(from);
      if (Kind::kValues == 128)
        shared[2 * i + row] = head;
      else if (kHead == 4)
        own[2 * row + i] = head;
      else
        own[row] |= head << 16 * i;
    }
  }
};
template <>
struct Tiled<I4_128> : HeadScales<I4_128, NibbleCodes, 4> {};
template <>
struct Tiled<Q4_0> : HeadScales<Q4_0, NibbleCodes, 2> {};
template <>
struct Tiled<Q4_1> : HeadScales<Q4_1, NibbleCodes, 4> {};
template <>
struct Tiled<I8_128> : HeadScales<I8_128, ByteCodes<false>, 4> {};
template <>
struct Tiled<FP8_128> : HeadScales<FP8_128, ByteCodes<true>, 4> {};
template <>
struct Tiled<Q8_0> : HeadScales<Q8_0, ByteCodes<false>, 2> {};

// Scale and minimum of six bits, which here have a byte each.
template <>
struct Tiled<Q4_K> : NibbleCodes {
  static constexpr int kGroup = 32, kOwn = 8, kShared = 8, kBias = kOffset;
  static constexpr bool kHasMinimum = true;

  static __device__ __forceinline__ Scaled scale(const unsigned *own, const unsigned *shared, int, int row, int number,
                                                 int) {
    const int place = 2 * row + number;
    return {half_of(shared[row], 0) * byte_of(own[0], place), half_of(shared[row], 1) * byte_of(own[1], place)};
  }
  static __device__ __forceinline__ void scales(const unsigned *own, const unsigned *shared, int part, int four,
                                                Scaled (&to)[2][2]) {
    each_scale<Tiled>(own, shared, part, four, to);
  }
  static __device__ __forceinline__ void put_scales(const Byte *block, int row, int four, unsigned *own,
                                                    unsigned *shared) {
    const unsigned low = read_32(block + 4), mid = read_32(block + 8), high = read_32(block + 12);
    const unsigned scales = four < 2 ? low & 0x3f3f3f3fu : (high & 0x0f0f0f0fu) | (low >> 2 & 0x30303030u);
    const unsigned minima = four < 2 ? mid & 0x3f3f3f3fu : (high >> 4 & 0x0f0f0f0fu) | (mid >> 2 & 0x30303030u);
    own[0] |= (scales >> 16 * (four % 2) & 0xffffu) << 16 * row;
    own[1] |= (minima >> 16 * (four % 2) & 0xffffu) << 16 * row;
    shared[row] = read_32(block);
  }
};

template <>
struct Tiled<Q6_K> : SixCodes {
  static constexpr int kGroup = 16, kOwn = 8, kShared = 4, kBias = kOffset + 32;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ Scaled scale(const unsigned *own, const unsigned *shared, int part, int row,
                                                 int number, int) {
    const float step = byte_of(own[part] ^ 0x80808080u, 2 * row + number) - 128.0f;
    return {half_of(shared[0], row) * step, 0.0f};
  }
  static __device__ __forceinline__ void scales(const unsigned *own, const unsigned *shared, int part, int four,
                                                Scaled (&to)[2][2]) {
    each_scale<Tiled>(own, shared, part, four, to);
  }
  static __device__ __forceinline__ void put_scales(const Byte *block, int row, int four, unsigned *own,
                                                    unsigned *shared) {
#pragma unroll
    for (int part = 0; part < 2; ++part) own[part] |= read_16(block + 192 + 8 * part + 2 * four) << 16 * row;
    shared[0] |= read_16(block + 208) << 16 * row;
  }
};

__device__ __forceinline__ float reciprocal(float value) {
  float near;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(value));
  return fmaf(fmaf(-value, near, 1.0f), near, near);
}

template <>
struct Tiled<NVFP4> : Fp4Codes {
  static constexpr int kGroup = 16, kOwn = 8, kShared = 16, kBias = 0;
  static constexpr bool kHasMinimum = false;

  // Those of products: times the reciprocal of what a value is divided by.
  static __device__ __forceinline__ void scales(const unsigned *own, const unsigned *shared, int part, int,
                                                Scaled (&to)[2][2]) {
    steps(own[part], to);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float all = __uint_as_float(shared[2 * part + row]), factor = all >= 0.0f ? all : reciprocal(-all);
#pragma unroll
      for (Scaled &of : to[row]) of.scale *= factor;
    }
  }
  static __device__ __forceinline__ void value_scales(const unsigned *own, const unsigned *shared, int part, int,
                                                      Scaled (&to)[2][2]) {
    steps(own[part], to);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float all = __uint_as_float(shared[2 * part + row]);
#pragma unroll
      for (Scaled &of : to[row]) of.scale = all >= 0.0f ? of.scale * all : quotient_of_any(of.scale, fabsf(all));
    }
  }
  static __device__ __forceinline__ void steps(unsigned codes, Scaled (&to)[2][2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned code = codes >> 8 * i;
      to[i / 2][i % 2] = {0x1p120f * __uint_as_float((code & 127u) << 20 | (code & 128u) << 24), 0.0f};
    }
    if ((((codes & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u) == 0u) return;
#pragma unroll
    for (int i = 0; i < 4; ++i)  // NaN has all bits
      if ((codes >> 8 * i & 127u) == 127u) to[i / 2][i % 2].scale = __uint_as_float(0x7fc00000u);
  }
  static __device__ __forceinline__ void put_scales(const Byte *blocks, int row, int four, unsigned *own,
                                                    unsigned *shared) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const Byte *const block = blocks + part * NVFP4::kBytes;
      own[part] |= read_16(block + 4 + 2 * four) << 16 * row;
      shared[2 * part + row] = read_32(block);
    }
  }
};

template <>
struct Tiled<MXFP4> : Fp4Codes {
  static constexpr int kGroup = 32, kOwn = 4, kShared = 0, kBias = 0;
  static constexpr bool kHasMinimum = false;

  static __device__ __forceinline__ Scaled scale(const unsigned *own, const unsigned *, int, int row, int number, int) {
    const unsigned exponent = own[0] >> 8 * (2 * row + number) & 255u;
    const unsigned low = exponent == 0u || exponent == 255u ? 0x400000u : 0u;  // of 2^-127, and of NaN
    return {__uint_as_float(exponent << 23 | low), 0.0f};
  }
  static __device__ __forceinline__ void scales(const unsigned *own, const unsigned *shared, int part, int four,
                                                Scaled (&to)[2][2]) {
    each_scale<Tiled>(own, shared, part, four, to);
  }
  static __device__ __forceinline__ void put_scales(const Byte *blocks, int row, int four, unsigned *own, unsigned *) {
    own[0] |= read_16(blocks + four / 2 * MXFP4::kBytes + 2 * (four % 2)) << 16 * row;
  }
};

// Scales and minima with the bits of the formula, of which products may have others in the last place.
template <class Of>
__device__ __forceinline__ void value_scales(const unsigned *own, const unsigned *shared, int part, int four,
                                             Scaled (&to)[2][2]) {
  Of::scales(own, shared, part, four, to);
}
template <>
__device__ __forceinline__ void value_scales<Tiled<NVFP4>>(const unsigned *own, const unsigned *shared, int part,
                                                           int four, Scaled (&to)[2][2]) {
  Tiled<NVFP4>::value_scales(own, shared, part, four, to);
}

// The four neighbours from `at` on as they are put: of a row's blocks.
template <class Kind>
__device__ __forceinline__ unsigned four_codes(const Byte *blocks, int at) {
  const Byte *const block = blocks + at / Kind::kValues * Kind::kBytes;
  const int within = at % Kind::kValues;
  unsigned codes[2];
  Kind::codes(block, within / 32, within % 16 / 4, codes);
  return codes[within % 32 / 16];
}
template <int kHead>
__device__ __forceinline__ unsigned four_numbers(const Byte *blocks, int at) {
  const unsigned two = read_16(blocks + at / 128 * (64 + kHead) + kHead + at % 128 / 2);
  return (two & 15u) | (two & 0xf0u) << 4 | (two & 0xf00u) << 8 | (two & 0xf000u) << 12;
}
template <>
__device__ __forceinline__ unsigned four_codes<NVFP4>(const Byte *blocks, int at) {
  return four_numbers<12>(blocks, at);
}
template <>
__device__ __forceinline__ unsigned four_codes<MXFP4>(const Byte *blocks, int at) {
  return four_numbers<4>(blocks, at);
}

// Where a lane's four codes of a slice are in 256 of k.
template <class Kind>
__device__ __forceinline__ int place_of(int slice, int four) {
  return Tiled<Kind>::kGroup == 16 ? 16 * slice + 4 * four : 32 * (slice / 2) + 8 * four + 4 * (slice % 2);
}

}  // namespace pk
