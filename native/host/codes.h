// codes.h: x as whole numbers of 16 bits, 32 elements with one scale, and their products with the codes of weights.
// These are whole numbers below 2^24: exact in any order, and as floats. So every processor gives the same bits.
#pragma once
#include "host/kernels.h"
#include "host/lanes.h"

namespace pk::host {
namespace {

constexpr float kMaxCode = 32639;      // 127 * 256 + 127: the high byte stays one
constexpr float kMinLargest = 1e-30f;  // 32 elements that are all smaller count as zeros: 1 / scale must be a float
constexpr int kTable = 8;              // steps whose scales and sums lie together

// A row of x in the memory that coded_bytes() counts. x = scale * whole, whole = 256 * high + low.
struct Codes {
  int16_t *whole;
  int8_t *high, *low;
  int32_t *fours;  // minus the sum of four
  float *table;    // of eight steps: their scales, then the sums of their elements
  PK_INLINE Codes(const uint8_t *from, int64_t k) {
    uint8_t *at = const_cast<uint8_t *>(from);
    const int64_t width = (k + 2 * kStep - 1) / (2 * kStep) * (2 * kStep);
    whole = reinterpret_cast<int16_t *>(at);
    high = reinterpret_cast<int8_t *>(at + 2 * width);
    low = reinterpret_cast<int8_t *>(at + 3 * width);
    fours = reinterpret_cast<int32_t *>(at + 4 * width);
    table = reinterpret_cast<float *>(at + 5 * width);
  }
  PK_INLINE float scale(int64_t step) const { return table[step / kTable * 2 * kTable + step % kTable]; }
  PK_INLINE float sum(int64_t step) const { return table[step / kTable * 2 * kTable + kTable + step % kTable]; }
};

// One step of 32 elements. Infinities and NaN become a scale of NaN, and so a result of NaN.
PK_INLINE void code_step(const float *x, const Codes &to, int64_t step) {
  float largest = 0;
  for (int i = 0; i < kStep; ++i) {
    const float size = __builtin_fabsf(x[i]);
    largest = largest < size || size != size ? size : largest;
  }
  const bool finite = largest < __builtin_inff(), some = finite && largest >= kMinLargest;
  const float scale = some ? largest / kMaxCode : finite ? 0.0f : __builtin_nanf(""), inverse = kMaxCode / largest;
  int32_t all = 0;
  for (int four = 0; four < kStep / 4; ++four) {
    int32_t sum = 0;
    for (int i = 0; i < 4; ++i) {
      const int64_t at = step * kStep + four * 4 + i;
      // Rounded to the nearest by the last bits of a float.
      const int32_t whole = some ? static_cast<int32_t>(x[four * 4 + i] * inverse + 0x1.8p23f - 0x1.8p23f) : 0;
      const int32_t high = (whole + 128) >> 8;
      to.whole[at] = static_cast<int16_t>(whole);
      to.high[at] = static_cast<int8_t>(high);
      to.low[at] = static_cast<int8_t>(whole - high * 256);
      sum += whole;
    }
    to.fours[step * (kStep / 4) + four] = -sum;
    all += sum;
  }
  float *table = to.table + step / kTable * 2 * kTable + step % kTable;
  table[0] = scale;
  table[kTable] = scale * static_cast<float>(all);
}

void code(const float *x, int64_t k, uint8_t *at) {
  __builtin_memset(at, 0, static_cast<size_t>(coded_bytes(k)));
  const Codes to(at, k);
  for (int64_t step = 0; step < k / kStep; ++step) code_step(x + step * kStep, to, step);
}

// ---- codes of a weight: 32 at a time, each a byte without a sign ----

#if defined(__AVX2__)
typedef uint8_t Step __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint16_t StepPairs __attribute__((vector_size(32), aligned(1), may_alias));
PK_INLINE Step load_step(const uint8_t *from) { return *reinterpret_cast<const Step *>(from); }
PK_INLINE Step joined(Bytes a, Bytes b) {
  return reinterpret_cast<Step>(_mm256_set_m128i(reinterpret_cast<__m128i>(b), reinterpret_cast<__m128i>(a)));
}
PK_INLINE Step right(Step bytes, int by, uint8_t mask) {
  return reinterpret_cast<Step>(reinterpret_cast<StepPairs>(bytes) >> by) & mask;
}
PK_INLINE Step left(Step bytes, int by, uint8_t mask) {
  return reinterpret_cast<Step>(reinterpret_cast<StepPairs>(bytes) << by) & mask;
}
#else
struct Step {
  Bytes a, b;
};
PK_INLINE Step load_step(const uint8_t *from) { return {load_bytes(from), load_bytes(from + 16)}; }
PK_INLINE Step joined(Bytes a, Bytes b) { return {a, b}; }
PK_INLINE Step operator|(Step one, Step two) { return {one.a | two.a, one.b | two.b}; }
PK_INLINE Step operator^(Step one, uint8_t bits) { return {one.a ^ bits, one.b ^ bits}; }
PK_INLINE Step right(Step bytes, int by, uint8_t mask) { return {right(bytes.a, by, mask), right(bytes.b, by, mask)}; }
PK_INLINE Step left(Step bytes, int by, uint8_t mask) { return {left(bytes.a, by, mask), left(bytes.b, by, mask)}; }
#endif

struct Pair {
  Step first, second;
};

// (codes - 2^kLess) times x, added up in fours, of the 64 elements from `at`. Nothing is taken away where kLess is -1.
#if defined(__AVX512VNNI__)
template <int kLess>
PK_INLINE Ints fours(const Pair &weights, const Codes &x, int64_t at) {
  const __m512i codes = _mm512_inserti64x4(_mm512_castsi256_si512(reinterpret_cast<__m256i>(weights.first)),
                                           reinterpret_cast<__m256i>(weights.second), 1);
  const __m512i high = _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes, _mm512_loadu_si512(x.high + at));
  __m512i sums = _mm512_slli_epi32(high, 8);
  if constexpr (kLess >= 0)
    sums = _mm512_add_epi32(sums, _mm512_slli_epi32(_mm512_loadu_si512(x.fours + at / 4), kLess));
  return {{reinterpret_cast<Wholes>(_mm512_dpbusd_epi32(sums, codes, _mm512_loadu_si512(x.low + at)))}};
}
#elif defined(__AVX2__)
PK_INLINE __m256i eight_fours(Step weights, const int16_t *x) {
  const __m256i codes = reinterpret_cast<__m256i>(weights), *at = reinterpret_cast<const __m256i *>(x);
  const __m256i a = _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(codes)), _mm256_loadu_si256(at));
  const __m256i b =
      _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(codes, 1)), _mm256_loadu_si256(at + 1));
  return _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8);  // hadd goes by halves of registers
}
template <int kLess>
PK_INLINE Ints fours(const Pair &weights, const Codes &x, int64_t at) {
  const __m256i a = eight_fours(weights.first, x.whole + at), b = eight_fours(weights.second, x.whole + at + kStep);
  Ints sums;
#if defined(__AVX512F__)
  sums.of[0] = reinterpret_cast<Wholes>(_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
#else
  sums.of[0] = reinterpret_cast<Wholes>(a);
  sums.of[1] = reinterpret_cast<Wholes>(b);
#endif
  if constexpr (kLess >= 0) sums = sums + (load_ints(x.fours + at / 4) << kLess);
  return sums;
}
#else
template <int kLess>
PK_INLINE Ints fours(const Pair &weights, const Codes &x, int64_t at) {
  uint8_t codes[2 * kStep];
  __builtin_memcpy(codes, &weights, sizeof codes);
  int32_t sums[kLanes];
  for (int four = 0; four < kLanes; ++four) {
    sums[four] = 0;
    for (int i = 0; i < 4; ++i) sums[four] += codes[four * 4 + i] * x.whole[at + four * 4 + i];
  }
  const Ints whole_sums = load_ints(sums);
  if constexpr (kLess >= 0) return whole_sums + (load_ints(x.fours + at / 4) << kLess);
  return whole_sums;
}
#endif

}  // namespace
}  // namespace pk::host
