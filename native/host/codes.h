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
static_assert(2 * kTogether == kLanes);

// Of 64 elements, where an element's whole number lies: where there are vectors, the first two of every four, then the
// last two, as products of words add them up.
PK_INLINE int place_of(int element) {
#if defined(__AVX2__)
  return element % 4 / 2 * kStep + element / 4 * 2 + element % 2;
#else
  return element;
#endif
}

// A row of x. x = scale * whole.
struct Codes {
  int16_t *whole;
  float *scale_lanes;  // of two steps: eight times the scale of each
  float *table;        // of eight steps: their scales, then the sums of their elements
};

// Rows of x in the memory that coded_bytes() counts: what each has of its own, then sums of elements, of kTogether rows
// beside each other, the first of two steps before the second: lanes of as many rows.
struct CodedRows {
  uint8_t *at;
  int64_t width, row_bytes;
  float *sums;
  PK_INLINE CodedRows(const uint8_t *from, int64_t k, int64_t rows)
      : at(const_cast<uint8_t *>(from)),
        width((k + 2 * kStep - 1) / (2 * kStep) * (2 * kStep)),
        row_bytes(coded_row_bytes(k)),
        sums(reinterpret_cast<float *>(at + rows * row_bytes)) {}
  PK_INLINE Codes row(int64_t row) const {
    uint8_t *own = at + row * row_bytes;
    return {reinterpret_cast<int16_t *>(own), reinterpret_cast<float *>(own + 2 * width),
            reinterpret_cast<float *>(own + 3 * width)};
  }
  // Of the rows that are beside a row, sums of two steps.
  PK_INLINE float *sum_lanes(int64_t row, int64_t unit) const {
    return sums + (row / kTogether * (width / (2 * kStep)) + unit) * kLanes;
  }
};

// One step of 32 elements. Infinities and NaN become a scale of NaN, and so a result of NaN.
PK_INLINE void code_step(const float *x, const Codes &to, float *sum_lanes, int64_t step) {
  float largest = 0;
  for (int i = 0; i < kStep; ++i) {
    const float size = __builtin_fabsf(x[i]);
    largest = largest < size || size != size ? size : largest;
  }
  const bool finite = largest < __builtin_inff(), some = finite && largest >= kMinLargest;
  const float scale = some ? largest / kMaxCode : finite ? 0.0f : __builtin_nanf(""), inverse = kMaxCode / largest;
  int32_t all = 0;
  int16_t *const pair = to.whole + step / 2 * 2 * kStep;
  for (int i = 0; i < kStep; ++i) {
    // Rounded to the nearest by the last bits of a float.
    const int32_t whole = some ? static_cast<int32_t>(x[i] * inverse + 0x1.8p23f - 0x1.8p23f) : 0;
    pair[place_of(static_cast<int>(step % 2) * kStep + i)] = static_cast<int16_t>(whole);
    all += whole;
  }
  const float sum = scale * static_cast<float>(all);
  float *const table = to.table + step / kTable * 2 * kTable + step % kTable;
  table[0] = scale;
  table[kTable] = sum;
  for (int i = 0; i < kLanes / 2; ++i) to.scale_lanes[step * (kLanes / 2) + i] = scale;
  sum_lanes[step % 2 * kTogether] = sum;
}

void code(const float *x, int64_t k, int64_t row, int64_t rows, uint8_t *at) {
  const CodedRows all(at, k, rows);
  const Codes to = all.row(row);
  __builtin_memset(to.whole, 0, static_cast<size_t>(all.row_bytes));
  const int64_t place = row % kTogether, last = row + 1 == rows ? kTogether : place + 1;  // nobody's lanes are zeros
  for (int64_t unit = 0; unit < all.width / (2 * kStep); ++unit)
    for (int64_t lane = place; lane < last; ++lane)
      all.sum_lanes(row, unit)[lane] = all.sum_lanes(row, unit)[kTogether + lane] = 0;
  for (int64_t step = 0; step < k / kStep; ++step)
    code_step(x + step * kStep, to, all.sum_lanes(row, step / 2) + place, step);
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

#if defined(__AVX2__)
// Of every four bytes the first two as words, and the last two.
PK_INLINE __m128i leading_bytes() { return _mm_set_epi8(-1, 13, -1, 12, -1, 9, -1, 8, -1, 5, -1, 4, -1, 1, -1, 0); }
PK_INLINE __m128i trailing_bytes() { return _mm_set_epi8(-1, 15, -1, 14, -1, 11, -1, 10, -1, 7, -1, 6, -1, 3, -1, 2); }
#endif

// (codes - 2^kLess) times x, added up in fours, of the 64 elements from `at`. Nothing is taken away where kLess is -1.
#if defined(__AVX512BW__)
template <int kLess>
PK_INLINE Ints fours(const Pair &weights, const Codes &x, int64_t at) {
  const __m512i codes = _mm512_inserti64x4(_mm512_castsi256_si512(reinterpret_cast<__m256i>(weights.first)),
                                           reinterpret_cast<__m256i>(weights.second), 1);
  __m512i first = _mm512_shuffle_epi8(codes, _mm512_broadcast_i32x4(leading_bytes())),
          last = _mm512_shuffle_epi8(codes, _mm512_broadcast_i32x4(trailing_bytes()));
  if constexpr (kLess >= 0) {
    const __m512i less = _mm512_set1_epi16(1 << kLess);
    first = _mm512_sub_epi16(first, less), last = _mm512_sub_epi16(last, less);
  }
  const __m512i a = _mm512_loadu_si512(x.whole + at), b = _mm512_loadu_si512(x.whole + at + kStep);
#if defined(__AVX512VNNI__)
  const __m512i sums = _mm512_dpwssd_epi32(_mm512_dpwssd_epi32(_mm512_setzero_si512(), first, a), last, b);
#else
  const __m512i sums = _mm512_add_epi32(_mm512_madd_epi16(first, a), _mm512_madd_epi16(last, b));
#endif
  return {{reinterpret_cast<Wholes>(sums)}};
}
#elif defined(__AVX2__)
template <int kLess>
PK_INLINE __m256i eight_fours(Step weights, const int16_t *x) {
  const __m256i codes = reinterpret_cast<__m256i>(weights), *at = reinterpret_cast<const __m256i *>(x);
  __m256i first = _mm256_shuffle_epi8(codes, _mm256_broadcastsi128_si256(leading_bytes())),
          last = _mm256_shuffle_epi8(codes, _mm256_broadcastsi128_si256(trailing_bytes()));
  if constexpr (kLess >= 0) {
    const __m256i less = _mm256_set1_epi16(1 << kLess);
    first = _mm256_sub_epi16(first, less), last = _mm256_sub_epi16(last, less);
  }
  return _mm256_add_epi32(_mm256_madd_epi16(first, _mm256_loadu_si256(at)),
                          _mm256_madd_epi16(last, _mm256_loadu_si256(at + 2)));
}
template <int kLess>
PK_INLINE Ints fours(const Pair &weights, const Codes &x, int64_t at) {
  Ints sums;
  sums.of[0] = reinterpret_cast<Wholes>(eight_fours<kLess>(weights.first, x.whole + at));
  sums.of[1] = reinterpret_cast<Wholes>(eight_fours<kLess>(weights.second, x.whole + at + kStep / 2));
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
    for (int i = 0; i < 4; ++i)
      sums[four] += (codes[four * 4 + i] - (kLess < 0 ? 0 : 1 << kLess)) * x.whole[at + four * 4 + i];
  }
  return load_ints(sums);
}
#endif

}  // namespace
}  // namespace pk::host
