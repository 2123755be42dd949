// block_codes.h: blocks of weights as codes and scales, for products of whole numbers: a family of types in each part.
// pair(n) is the codes 64 n to 64 n + 63. scaled(x, unit) has the scales of the codes times those of x, lanes(scaled,
// n) the ones of pair(n). What a type adds to its codes, for some rows of x, comes to its Shifts: all() takes each
// block, one() each block and row.
#pragma once
#include "host/codes.h"
#include "host/formats.h"

namespace pk::host {
namespace {

constexpr int kNothing = -1;  // is taken from the codes

// ---- numbers that several lanes share ----

PK_INLINE Lanes halves(float first, float second) {
#if defined(__AVX512F__)
  return {{reinterpret_cast<Floats>(_mm512_mask_blend_ps(0xff00, _mm512_set1_ps(first), _mm512_set1_ps(second)))}};
#else
  return Lanes::each([&](int i)
                         __attribute__((always_inline)) { return Floats{} + (i * 2 < kRegisters ? first : second); });
#endif
}
// The two float16 numbers that a block begins with, eight times each.
PK_INLINE Lanes leading_halves(const uint8_t *block) {
#if defined(__AVX512F__)
  int both;
  __builtin_memcpy(&both, block, 4);
  const __m512i places = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512 factors = _mm512_castps128_ps512(_mm_cvtph_ps(_mm_cvtsi32_si128(both)));
  return {{reinterpret_cast<Floats>(_mm512_maskz_permutexvar_ps(0xffff, places, factors))}};
#else
  return halves(half(block), half(block + 2));
#endif
}
// Four numbers, four times each.
PK_INLINE Lanes quarters(const float *from) {
#if defined(__AVX512F__)
  const __m512i places = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
  return {{reinterpret_cast<Floats>(
      _mm512_maskz_permutexvar_ps(0xffff, places, _mm512_castps128_ps512(_mm_loadu_ps(from))))}};
#elif defined(__AVX2__)
  return {{reinterpret_cast<Floats>(_mm256_set_m128(_mm_set1_ps(from[1]), _mm_set1_ps(from[0]))),
           reinterpret_cast<Floats>(_mm256_set_m128(_mm_set1_ps(from[3]), _mm_set1_ps(from[2])))}};
#else
  float all[kLanes];
  for (int i = 0; i < kLanes; ++i) all[i] = from[i / 4];
  return load(all);
#endif
}
// Eight numbers, twice each.
PK_INLINE Lanes doubled(const float *from) {
#if defined(__AVX512F__)
  const __m512i places = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return {{reinterpret_cast<Floats>(
      _mm512_maskz_permutexvar_ps(0xffff, places, _mm512_castps256_ps512(_mm256_loadu_ps(from))))}};
#else
  float all[kLanes];
  for (int i = 0; i < kLanes; ++i) all[i] = from[i / 2];
  return load(all);
#endif
}

struct Scaled {
  float scale[kLanes];
};

struct NoShifts {
  template <typename Block>
  PK_INLINE void all(const Block &, const CodedRows &, int64_t, int64_t) {}
  template <typename All>
  PK_INLINE void one(int, const All &) {}
  PK_INLINE float added_to(float sum, int64_t, int) const { return sum; }
};

// ---- Q4_0 to Q8_0: two blocks at a time ----

template <int kBlockBytes, int kLessThan>
struct Twins {
  static constexpr int kElements = 64, kBytes = 2 * kBlockBytes, kBlock = kBlockBytes, kLess = kLessThan;
  template <int kRows>
  using Shifts = NoShifts;
  const uint8_t *at;
  Lanes scales;  // of the first block, and of the second
  PK_INLINE explicit Twins(const uint8_t *from) : at(from), scales(halves(half(from), half(from + kBlockBytes))) {}
  PK_INLINE Lanes scaled(const Codes &x, int64_t unit) const { return scales * load(x.scale_lanes + unit * kLanes); }
  static PK_INLINE Lanes lanes(const Lanes &all, int) { return all; }
};
// With a number that is added to the codes times the scale, for all rows that lie together at once.
template <int kBlockBytes>
struct Raised : Twins<kBlockBytes, kNothing> {
  using Twins<kBlockBytes, kNothing>::at;
  Lanes raises;
  PK_INLINE explicit Raised(const uint8_t *from)
      : Twins<kBlockBytes, kNothing>(from), raises(halves(half(from + 2), half(from + kBlockBytes + 2))) {}
  template <int kRows>
  struct Shifts : NoShifts {
    Lanes sums = every(0);
    PK_INLINE void all(const Raised &block, const CodedRows &x, int64_t first, int64_t unit) {
      sums = sums + block.raises * load(x.sum_lanes(first, unit));
    }
    PK_INLINE float added_to(float sum, int64_t first, int row) const {
      float stored[kLanes];
      store(stored, sums);
      const int64_t lane = first % kTogether + row;
      return sum + (stored[lane] + stored[kTogether + lane]);
    }
  };
};

PK_INLINE Step halves_of(const uint8_t *from) {
  const Bytes bytes = load_bytes(from);
  return joined(bytes & uint8_t{15}, right(bytes, 4, 15));
}
PK_INLINE Step fives_of(const uint8_t *bits, const uint8_t *halves) {
  const Fives<0> codes(bits, halves);
  return joined(reinterpret_cast<Bytes>(codes.a), reinterpret_cast<Bytes>(codes.b));
}

struct Q4_0_Codes : Twins<18, 3> {
  using Twins::Twins;
  PK_INLINE Pair pair(int) const { return {halves_of(at + 2), halves_of(at + 20)}; }
};
struct Q4_1_Codes : Raised<20> {
  using Raised::Raised;
  PK_INLINE Pair pair(int) const { return {halves_of(at + 4), halves_of(at + 24)}; }
};
struct Q5_0_Codes : Twins<22, 4> {
  using Twins::Twins;
  PK_INLINE Pair pair(int) const { return {fives_of(at + 2, at + 6), fives_of(at + 24, at + 28)}; }
};
struct Q5_1_Codes : Raised<24> {
  using Raised::Raised;
  PK_INLINE Pair pair(int) const { return {fives_of(at + 4, at + 8), fives_of(at + 28, at + 32)}; }
};
struct Q8_0_Codes : Twins<34, 7> {
  using Twins::Twins;
  PK_INLINE Pair pair(int) const { return {load_step(at + 2) ^ uint8_t{128}, load_step(at + 36) ^ uint8_t{128}}; }
};

// ---- Q4_K to Q6_K ----

// With eight scales and eight minima, which are taken away: lanes 0 to 7 and 8 to 15.
template <int kBlockBytes>
struct Lowered {
  static constexpr int kElements = 256, kBytes = kBlockBytes, kBlock = kBlockBytes, kLess = kNothing;
  const uint8_t *at;
  Lanes scales;
  PK_INLINE explicit Lowered(const uint8_t *from)
      : at(from), scales(floats(wide(group_codes(from))) * leading_halves(from)) {}
  PK_INLINE Scaled scaled(const Codes &x, int64_t unit) const {
    Scaled block_scales;
    store(block_scales.scale, scales * load(x.table + unit * 2 * kTable));
    settle(block_scales.scale);
    return block_scales;
  }
  static PK_INLINE Lanes lanes(const Scaled &all, int n) { return halves(all.scale[2 * n], all.scale[2 * n + 1]); }
  template <int kRows>
  struct Shifts : NoShifts {
    Lanes sums[kRows];
    PK_INLINE Shifts() {
#pragma GCC unroll 8
      for (int row = 0; row < kRows; ++row) sums[row] = every(0);
    }
    PK_INLINE void one(int row, const Scaled &all) { sums[row] = sums[row] + load(all.scale); }
    PK_INLINE float added_to(float sum, int64_t, int row) const {
      float stored[kLanes];
      store(stored, sums[row]);
      for (int width = kLanes / 4; width > 0; width /= 2)
        for (int i = 0; i < width; ++i) stored[kLanes / 2 + i] += stored[kLanes / 2 + i + width];
      return sum - stored[kLanes / 2];
    }
  };
};

struct Q4_K_Codes : Lowered<144> {
  using Lowered::Lowered;
  PK_INLINE Pair pair(int n) const {
    const Step both = load_step(at + 16 + 32 * n);
    return {right(both, 0, 15), right(both, 4, 15)};
  }
};
struct Q5_K_Codes : Lowered<176> {
  using Lowered::Lowered;
  PK_INLINE Pair pair(int n) const {
    const Step both = load_step(at + 48 + 32 * n), high = load_step(at + 16);
    return {right(both, 0, 15) | fifth(high, 2 * n), right(both, 4, 15) | fifth(high, 2 * n + 1)};
  }
  static PK_INLINE Step fifth(Step bits, int group) {
    return group < 4 ? left(bits, 4 - group, 16) : right(bits, group - 4, 16);
  }
};
struct Q6_K_Codes {
  static constexpr int kElements = 256, kBytes = 210, kBlock = 210, kLess = 5;
  template <int kRows>
  using Shifts = NoShifts;
  const uint8_t *at;
  Lanes scales;
  PK_INLINE explicit Q6_K_Codes(const uint8_t *from)
      : at(from), scales(floats(wide(*reinterpret_cast<const Signed *>(from + 192))) * half(from + 208)) {}
  PK_INLINE Scaled scaled(const Codes &x, int64_t unit) const {
    Scaled block_scales;
    store(block_scales.scale, scales * doubled(x.table + unit * 2 * kTable));
    settle(block_scales.scale);
    return block_scales;
  }
  static PK_INLINE Lanes lanes(const Scaled &all, int n) { return quarters(all.scale + 4 * n); }
  PK_INLINE Pair pair(int n) const { return {codes(2 * n), codes(2 * n + 1)}; }
  PK_INLINE Step codes(int place) const {
    const int group = place % 4;
    const Step low = load_step(at + 64 * (place / 4) + 32 * (group % 2)), high = load_step(at + 128 + 32 * (place / 4));
    const Step upper = group < 2 ? left(high, 4 - 2 * group, 48) : right(high, 2 * group - 4, 48);
    return right(low, group / 2 * 4, 15) | upper;
  }
};

}  // namespace
}  // namespace pk::host
