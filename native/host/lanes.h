// lanes.h: sixteen numbers at once, in as many registers as the processor needs for them. Included by files that are
// compiled for one kind of processor: nothing here may be shared with others, so all of it is in an unnamed namespace.
#pragma once
#include <cstddef>
#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define PK_INLINE inline __attribute__((always_inline))

namespace pk::host {
namespace {

constexpr int kLanes = 16;  // of a partial result; there are two of them

#if defined(__AVX512F__)
constexpr int kRegister = 64;
#elif defined(__AVX__)
constexpr int kRegister = 32;
#else
constexpr int kRegister = 16;
#endif
constexpr int kRegisters = 64 / kRegister, kEach = kLanes / kRegisters;

typedef float Floats __attribute__((vector_size(kRegister), aligned(4), may_alias));
typedef int32_t Wholes __attribute__((vector_size(kRegister), aligned(4), may_alias));

// Compilers take vectors that are wider than a register apart, number by number; so here are registers, and loops.
#define PK_MANY(type, register)                                                         \
  struct type {                                                                         \
    register of[kRegisters];                                                            \
    template <typename Fn>                                                              \
    PK_INLINE static type each(const Fn &fn) {                                          \
      type built;                                                                       \
      _Pragma("GCC unroll 4") for (int i = 0; i < kRegisters; ++i) built.of[i] = fn(i); \
      return built;                                                                     \
    }                                                                                   \
  };
PK_MANY(Lanes, Floats)
PK_MANY(Ints, Wholes)
#undef PK_MANY

#define PK_LANES(type, scalar, sign)                                                               \
  PK_INLINE type operator sign(const type &a, const type &b) {                                     \
    return type::each([&](int i) __attribute__((always_inline)) { return a.of[i] sign b.of[i]; }); \
  }                                                                                                \
  PK_INLINE type operator sign(const type &a, scalar b) {                                          \
    return type::each([&](int i) __attribute__((always_inline)) { return a.of[i] sign b; });       \
  }
PK_LANES(Lanes, float, +)
PK_LANES(Lanes, float, -)
PK_LANES(Lanes, float, *)
PK_LANES(Lanes, float, /)
PK_LANES(Ints, int32_t, +)
PK_LANES(Ints, int32_t, -)
PK_LANES(Ints, int32_t, |)
PK_LANES(Ints, int32_t, &)
PK_LANES(Ints, int32_t, <<)
PK_LANES(Ints, int32_t, >>)
#undef PK_LANES

template <typename To, typename From>
PK_INLINE To as(const From &from) {
  return reinterpret_cast<const To &>(from);
}

PK_INLINE Lanes load(const float *from) {
  return Lanes::each([&](int i) __attribute__((always_inline)) {
    return *reinterpret_cast<const Floats *>(from + i * kEach);
  });
}
PK_INLINE void store(float *to, const Lanes &lanes) {
#pragma GCC unroll 4
  for (int i = 0; i < kRegisters; ++i) *reinterpret_cast<Floats *>(to + i * kEach) = lanes.of[i];
}
PK_INLINE Ints load_ints(const int32_t *from) {
  return Ints::each([&](int i)
                        __attribute__((always_inline)) { return *reinterpret_cast<const Wholes *>(from + i * kEach); });
}
PK_INLINE Lanes every(float value) {
  return Lanes::each([&](int) __attribute__((always_inline)) { return Floats{} + value; });
}
PK_INLINE Lanes floats(const Ints &ints) {
  return Lanes::each([&](int i) __attribute__((always_inline)) { return __builtin_convertvector(ints.of[i], Floats); });
}
PK_INLINE Lanes as_lanes(const Ints &bits) {
  return Lanes::each([&](int i) __attribute__((always_inline)) { return reinterpret_cast<Floats>(bits.of[i]); });
}
PK_INLINE Ints as_ints(const Lanes &lanes) {
  return Ints::each([&](int i) __attribute__((always_inline)) { return reinterpret_cast<Wholes>(lanes.of[i]); });
}

// ---- bytes and halves as whole numbers, 16 of them ----

typedef uint8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));
typedef int8_t Signed __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t Pairs __attribute__((vector_size(16), aligned(1), may_alias));  // the same bytes, two by two

PK_INLINE Bytes load_bytes(const uint8_t *from) { return *reinterpret_cast<const Bytes *>(from); }

// Bits of bytes: shifted as pairs, then what came from the neighbour is cut off.
PK_INLINE Bytes right(Bytes bytes, int by, uint8_t mask) {
  return reinterpret_cast<Bytes>(reinterpret_cast<Pairs>(bytes) >> by) & mask;
}
PK_INLINE Bytes left(Bytes bytes, int by, uint8_t mask) {
  return reinterpret_cast<Bytes>(reinterpret_cast<Pairs>(bytes) << by) & mask;
}

#if defined(__AVX512F__)
PK_INLINE Ints wide(Bytes bytes) {
  return {{reinterpret_cast<Wholes>(_mm512_maskz_cvtepu8_epi32(0xffff, reinterpret_cast<__m128i>(bytes)))}};
}
PK_INLINE Ints wide(Signed bytes) {
  return {{reinterpret_cast<Wholes>(_mm512_maskz_cvtepi8_epi32(0xffff, reinterpret_cast<__m128i>(bytes)))}};
}
PK_INLINE Ints wide_halves(const uint8_t *from) {
  return {{reinterpret_cast<Wholes>(
      _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from))))}};
}
#elif defined(__AVX2__)
PK_INLINE Ints wide(Bytes bytes) {
  const __m128i packed = reinterpret_cast<__m128i>(bytes);
  return {{reinterpret_cast<Wholes>(_mm256_cvtepu8_epi32(packed)),
           reinterpret_cast<Wholes>(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(packed, packed)))}};
}
PK_INLINE Ints wide(Signed bytes) {
  const __m128i packed = reinterpret_cast<__m128i>(bytes);
  return {{reinterpret_cast<Wholes>(_mm256_cvtepi8_epi32(packed)),
           reinterpret_cast<Wholes>(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(packed, packed)))}};
}
PK_INLINE Ints wide_halves(const uint8_t *from) {
  const __m128i *at = reinterpret_cast<const __m128i *>(from);
  return {{reinterpret_cast<Wholes>(_mm256_cvtepu16_epi32(_mm_loadu_si128(at))),
           reinterpret_cast<Wholes>(_mm256_cvtepu16_epi32(_mm_loadu_si128(at + 1)))}};
}
#else
template <typename From>
PK_INLINE Ints widened(const From *from) {
  return Ints::each([&](int i) __attribute__((always_inline)) {
    Wholes built;
    for (int j = 0; j < kEach; ++j) built[j] = from[i * kEach + j];
    return built;
  });
}
PK_INLINE Ints wide(Bytes bytes) { return widened(reinterpret_cast<const uint8_t *>(&bytes)); }
PK_INLINE Ints wide(Signed bytes) { return widened(reinterpret_cast<const int8_t *>(&bytes)); }
PK_INLINE Ints wide_halves(const uint8_t *from) {
  uint16_t halves[kLanes];
  __builtin_memcpy(halves, from, sizeof halves);
  return widened(halves);
}
#endif

// ---- float16 ----

// Exact for every float16: the exponent is moved, and what became too small by that is scaled back.
PK_INLINE float half_of(uint16_t bits) {
  uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  float scaled = as<float>(magnitude) * 0x1p112f;
  const uint32_t special = magnitude >= (0x7c00u << 13) ? 0x7f800000u : 0;  // infinities and NaN
  magnitude = as<uint32_t>(scaled) | special | static_cast<uint32_t>(bits & 0x8000) << 16;
  return as<float>(magnitude);
}
PK_INLINE float half(const uint8_t *from) {
  uint16_t bits;
  __builtin_memcpy(&bits, from, 2);
#if defined(__F16C__)
  return _cvtsh_ss(bits);
#else
  return half_of(bits);
#endif
}
PK_INLINE Lanes half_lanes(const uint8_t *from) {
#if defined(__AVX512F__)
  const __m256i packed = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
  return {{reinterpret_cast<Floats>(_mm512_maskz_cvtph_ps(0xffff, packed))}};
#elif defined(__F16C__)
  const __m128i *at = reinterpret_cast<const __m128i *>(from);
  return {{reinterpret_cast<Floats>(_mm256_cvtph_ps(_mm_loadu_si128(at))),
           reinterpret_cast<Floats>(_mm256_cvtph_ps(_mm_loadu_si128(at + 1)))}};
#else
  float built[kLanes];
  for (int i = 0; i < kLanes; ++i) built[i] = half(from + 2 * i);
  return load(built);
#endif
}

// ---- sums and the exponential ----

PK_INLINE float added(const Lanes &a, const Lanes &b) {
  float sum[kLanes];
  store(sum, a + b);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) sum[i] += sum[i + width];
  return sum[0];
}

// e^x within 2 units in the last place; 0 and infinity beyond what a float holds, NaN for NaN.
PK_INLINE Lanes exponential(const Lanes &packed) {
  const Lanes x = Lanes::each([&](int i) __attribute__((always_inline)) {
    const Floats low = Floats{} - 104.0f, high = Floats{} + 89.0f, bounded = packed.of[i] < low ? low : packed.of[i];
    return bounded > high ? high : bounded;
  });
  const Lanes whole = x * 0x1.715476p+0f + 0x1.8p23f - 0x1.8p23f;  // rounded by its last bits
  const Lanes r = (x - whole * 0x1.62e4p-1f) - whole * 0x1.7f7d1cp-20f;
  Lanes p = r * 0x1.6c16c2p-10f + 0x1.111112p-7f;  // 1/720, 1/120, ...
  p = p * r + 0x1.555556p-5f;
  p = p * r + 0x1.555556p-3f;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  return Lanes::each([&](int i) __attribute__((always_inline)) {
    // 2^whole in two factors: it may be smaller than what a float holds with all bits.
    const Wholes power = __builtin_convertvector(whole.of[i], Wholes), first = power >> 1;
    const Wholes one = (first + 127) << 23, two = (power - first + 127) << 23;
    const Floats result = p.of[i] * reinterpret_cast<Floats>(one) * reinterpret_cast<Floats>(two);
    return packed.of[i] != packed.of[i] ? packed.of[i] : result;
  });
}

}  // namespace
}  // namespace pk::host
