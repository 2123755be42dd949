// formats.h: blocks of weights as lanes of floats, 32 at a time: a family of types in each part. each(block, use) calls
// use(n, a, b) with the values 32 n to 32 n + 31 of a block. Products are rounded before anything is added, as the gguf
// package has it.
#pragma once
#include "host/kernels.h"
#include "host/lanes.h"

namespace pk::host {
namespace {

// ---- codes of four bits as values: where one instruction looks sixteen up, a block has a table of them ----

#if defined(__AVX512F__)
// Only the last four bits of a code are looked at.
struct Table {
  Lanes values;
  PK_INLINE Lanes operator()(const Ints &codes) const {
    return {{reinterpret_cast<Floats>(_mm512_maskz_permutexvar_ps(0xffff, reinterpret_cast<__m512i>(codes.of[0]),
                                                                  reinterpret_cast<__m512>(values.of[0])))}};
  }
};
PK_INLINE Lanes counted() { return {{Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}}; }
PK_INLINE Table centered(float scale) { return {(counted() - 8.0f) * scale}; }
PK_INLINE Table raised(float scale, float by) { return {counted() * scale + by}; }
PK_INLINE Table lowered(float scale, float by) { return {counted() * scale - by}; }
#else
PK_INLINE auto centered(float scale) {
  return [=](const Ints &codes) __attribute__((always_inline)) { return (floats(codes & 15) - 8.0f) * scale; };
}
PK_INLINE auto raised(float scale, float by) {
  return [=](const Ints &codes) __attribute__((always_inline)) { return floats(codes & 15) * scale + by; };
}
PK_INLINE auto lowered(float scale, float by) {
  return [=](const Ints &codes) __attribute__((always_inline)) { return floats(codes & 15) * scale - by; };
}
#endif

// Numbers through memory: from there a load fills all lanes with one, where registers would have to be shuffled.
template <size_t kCount>
PK_INLINE void settle(float (&numbers)[kCount]) {
  asm("" : "+m"(numbers));
}

// ---- Q4_0 to Q8_0: 32 elements with one scale ----

struct Q4_0 {
  static constexpr int kElements = 32, kBytes = 18;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    const Ints codes = wide(load_bytes(block + 2));
    const auto values = centered(half(block));
    use(0, values(codes), values(codes >> 4));
  }
};

struct Q4_1 {
  static constexpr int kElements = 32, kBytes = 20;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    const Ints codes = wide(load_bytes(block + 4));
    const auto values = raised(half(block), half(block + 2));
    use(0, values(codes), values(codes >> 4));
  }
};

// Codes of five bits: four in halves of bytes, and one in 32 bits before them. kLess is taken from each.
template <int kLess>
struct Fives {
  Signed a, b;
#if defined(__AVX2__)
  PK_INLINE Fives(const uint8_t *bits, const uint8_t *halves) {
    const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i *>(halves));
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(packed), _mm_srli_epi16(packed, 4), 1);
    __m256i codes = _mm256_and_si256(both, _mm256_set1_epi8(15));
    int32_t fifths;
    __builtin_memcpy(&fifths, bits, 4);
#if defined(__AVX512F__)
    codes = _mm256_mask_add_epi8(codes, static_cast<__mmask32>(fifths), codes, _mm256_set1_epi8(16));
#else
    const __m256i bytes = _mm256_shuffle_epi8(
        _mm256_set1_epi32(fifths), _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0));
    const __m256i place = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, place), place);
    codes = _mm256_or_si256(codes, _mm256_and_si256(is_set, _mm256_set1_epi8(16)));
#endif
    if constexpr (kLess != 0) codes = _mm256_sub_epi8(codes, _mm256_set1_epi8(kLess));
    a = reinterpret_cast<Signed>(_mm256_castsi256_si128(codes));
    b = reinterpret_cast<Signed>(_mm256_extracti128_si256(codes, 1));
  }
#else
  PK_INLINE Fives(const uint8_t *bits, const uint8_t *halves) {
    uint32_t fifths;
    __builtin_memcpy(&fifths, bits, 4);
    for (int i = 0; i < 16; ++i) {
      a[i] = static_cast<int8_t>(((halves[i] & 15) | (fifths >> i & 1) << 4) - kLess);
      b[i] = static_cast<int8_t>(((halves[i] >> 4) | (fifths >> (16 + i) & 1) << 4) - kLess);
    }
  }
#endif
};

struct Q5_0 {
  static constexpr int kElements = 32, kBytes = 22;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    const Fives<16> codes(block + 2, block + 6);
    const float scale = half(block);
    use(0, floats(wide(codes.a)) * scale, floats(wide(codes.b)) * scale);
  }
};

struct Q5_1 {
  static constexpr int kElements = 32, kBytes = 24;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    const Fives<0> codes(block + 4, block + 8);
    const float scale = half(block), shift = half(block + 2);
    use(0, floats(wide(codes.a)) * scale + shift, floats(wide(codes.b)) * scale + shift);
  }
};

struct Q8_0 {
  static constexpr int kElements = 32, kBytes = 34;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    const float scale = half(block);
    const Signed *codes = reinterpret_cast<const Signed *>(block + 2);
    use(0, floats(wide(codes[0])) * scale, floats(wide(codes[1])) * scale);
  }
};

// ---- Q4_K to Q6_K: 256 elements, groups with scales of their own ----

// Eight scales and eight minima of six bits, from twelve bytes.
PK_INLINE Bytes group_codes(const uint8_t *block) {
#if defined(__AVX2__)
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i *>(block));  // two scales, then the twelve
  const __m128i low = _mm_srlv_epi32(_mm_shuffle_epi32(packed, 0xed), _mm_setr_epi32(0, 0, 0, 4));
  const __m128i high = _mm_srli_epi32(_mm_shuffle_epi32(packed, 0x84), 2);
  const int six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x30303030;
  return reinterpret_cast<Bytes>(_mm_or_si128(_mm_and_si128(low, _mm_setr_epi32(six, four, six, four)),
                                              _mm_and_si128(high, _mm_setr_epi32(0, two, 0, two))));
#else
  uint32_t packed[3];
  __builtin_memcpy(packed, block + 4, 12);
  const uint32_t low = 0x3f3f3f3fu, four = 0x0f0f0f0fu, two = 0x03030303u;
  const uint32_t first = (packed[2] & four) | (packed[0] >> 6 & two) << 4;
  const uint32_t last = (packed[2] >> 4 & four) | (packed[1] >> 6 & two) << 4;
  typedef uint32_t Four __attribute__((vector_size(16)));
  const Four codes = {packed[0] & low, first, packed[1] & low, last};
  return reinterpret_cast<Bytes>(codes);
#endif
}

struct Groups {
  float scale[kLanes], minimum[kLanes];  // the first eight, and the last eight
  PK_INLINE explicit Groups(const uint8_t *block) {
    const Lanes all = floats(wide(group_codes(block)));
    store(scale, all * half(block));
    store(minimum, all * half(block + 2));
    settle(scale);
    settle(minimum);
  }
};

struct Q4_K {
  static constexpr int kElements = 256, kBytes = 144;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    const Groups groups(block);
#pragma GCC unroll 4
    for (int pair = 0; pair < 4; ++pair) {
      const uint8_t *at = block + 16 + 32 * pair;
      const Ints a = wide(load_bytes(at)), b = wide(load_bytes(at + 16));
      const auto first = lowered(groups.scale[2 * pair], groups.minimum[8 + 2 * pair]);
      use(2 * pair, first(a), first(b));
      const auto second = lowered(groups.scale[2 * pair + 1], groups.minimum[8 + 2 * pair + 1]);
      use(2 * pair + 1, second(a >> 4), second(b >> 4));
    }
  }
};

struct Q5_K {
  static constexpr int kElements = 256, kBytes = 176;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    const Groups groups(block);
    const Bytes high_a = load_bytes(block + 16), high_b = load_bytes(block + 32);
#pragma GCC unroll 8
    for (int group = 0; group < 8; ++group) {
      const uint8_t *at = block + 48 + 32 * (group / 2);
      const int shift = group % 2 * 4;
      const Bytes a = right(load_bytes(at), shift, 15) | fifth(high_a, group);
      const Bytes b = right(load_bytes(at + 16), shift, 15) | fifth(high_b, group);
      const float scale = groups.scale[group], minimum = groups.minimum[8 + group];
      use(group, floats(wide(a)) * scale - minimum, floats(wide(b)) * scale - minimum);
    }
  }
  static PK_INLINE Bytes fifth(Bytes bits, int group) {
    return group < 4 ? left(bits, 4 - group, 16) : right(bits, group - 4, 16);
  }
};

struct Q6_K {
  static constexpr int kElements = 256, kBytes = 210;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    float scale[kLanes];
    store(scale, floats(wide(*reinterpret_cast<const Signed *>(block + 192))) * half(block + 208));
    settle(scale);
#pragma GCC unroll 8
    for (int place = 0; place < 8; ++place) {
      const int group = place % 4;
      const uint8_t *low = block + 64 * (place / 4) + 32 * (group % 2), *high = block + 128 + 32 * (place / 4);
      const Signed a = code(load_bytes(low), load_bytes(high), group);
      const Signed b = code(load_bytes(low + 16), load_bytes(high + 16), group);
      use(place, floats(wide(a)) * scale[2 * place], floats(wide(b)) * scale[2 * place + 1]);
    }
  }
  static PK_INLINE Signed code(Bytes low, Bytes high, int group) {
    const Bytes upper = group < 2 ? left(high, 4 - 2 * group, 48) : right(high, 2 * group - 4, 48);
    return reinterpret_cast<Signed>((right(low, group / 2 * 4, 15) | upper) - uint8_t{32});
  }
};

// ---- plain floats ----

struct F32 {
  static constexpr int kElements = 32, kBytes = 128, kOne = 4;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    const float *from = reinterpret_cast<const float *>(block);
    use(0, load(from), load(from + kLanes));
  }
};

struct BF16 {
  static constexpr int kElements = 32, kBytes = 64, kOne = 2;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    use(0, as_lanes(wide_halves(block) << 16), as_lanes(wide_halves(block + 32) << 16));
  }
};

struct F16 {
  static constexpr int kElements = 32, kBytes = 64, kOne = 2;
  template <typename Use>
  static PK_INLINE void each(const uint8_t *block, const Use &use) {
    use(0, half_lanes(block), half_lanes(block + 32));
  }
};

template <typename F>
concept Plain = requires {
  F::kOne;
};

}  // namespace
}  // namespace pk::host
