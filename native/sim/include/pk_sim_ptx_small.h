// pk_sim_ptx_small.h: f16 and bf16 in inline PTX, and conversions to formats of a few bits. A value is an unsigned
// integer with its bits; two share a word, the first in the lower half.
#pragma once
#pragma GCC system_header

#include "pk_sim_half.h"
#include "pk_sim_ptx_float.h"

enum pk_ptx_rounding { PK_PTX_RN, PK_PTX_RZ, PK_PTX_RM, PK_PTX_RP, PK_PTX_RNA };

// A format: bits of the exponent and of the fraction, and what stands for infinity and for no number. Most: the
// greatest finite number.
template <int Exponent, int Fraction, unsigned Infinity, unsigned None, unsigned Most>
struct pk_ptx_format {
  static constexpr int exponent = Exponent, fraction = Fraction;
  static constexpr unsigned infinity = Infinity, none = None, most = Most, sign = 1u << (Exponent + Fraction);
};
struct pk_ptx_f16 : pk_ptx_format<5, 10, 0x7c00u, 0x7fffu, 0x7bffu> {};
struct pk_ptx_bf16 : pk_ptx_format<8, 7, 0x7f80u, 0x7fffu, 0x7f7fu> {};
struct pk_ptx_tf32 : pk_ptx_format<8, 10, 0x3fc00u, 0x3ffffu, 0x3fbffu> {};
struct pk_ptx_e5m2 : pk_ptx_format<5, 2, 0x7cu, 0x7fu, 0x7bu> {};
struct pk_ptx_e4m3 : pk_ptx_format<4, 3, 0x7fu, 0x7fu, 0x7eu> {};
struct pk_ptx_e2m3 : pk_ptx_format<2, 3, 0x1fu, 0x1fu, 0x1fu> {};
struct pk_ptx_e3m2 : pk_ptx_format<3, 2, 0x1fu, 0x1fu, 0x1fu> {};
struct pk_ptx_e2m1 : pk_ptx_format<2, 1, 0x7u, 0x7u, 0x7u> {};

// A number rounded once. finite: too large a number becomes the greatest, in place of infinity.
template <class F>
PK_SIM_INLINE unsigned pk_ptx_narrowed(double x, pk_ptx_rounding mode, bool finite = false) {
  const unsigned long long bits = (unsigned long long)__double_as_longlong(x), one = 1ull << 52;
  const unsigned sign = bits >> 63 ? F::sign : 0u;
  if (x != x) return F::none;
  constexpr int least = 2 - (1 << (F::exponent - 1)), cut = 52 - F::fraction;
  const int exponent = (int)(bits >> 52 & 0x7ffu) - 1023;
  const unsigned long long fraction = (bits & (one - 1)) | (exponent == -1023 ? 0ull : one);
  const int below = exponent < least ? least - exponent : 0;
  const int shift = cut + below > 62 ? 62 : cut + below;
  const unsigned long long kept = fraction >> shift, rest = fraction & ((1ull << shift) - 1),
                           half = 1ull << (shift - 1);
  // The leading bit is one step of the exponent.
  unsigned long long size = exponent > least ? kept + ((unsigned long long)(exponent - least) << F::fraction) : kept;
  const bool away = mode == PK_PTX_RN    ? rest > half || (rest == half && (kept & 1))
                    : mode == PK_PTX_RNA ? rest >= half
                    : mode == PK_PTX_RP  ? rest && !sign
                    : mode == PK_PTX_RM  ? rest && sign
                                         : false;
  size += away;
  if (size > F::most || exponent == 1024) {
    const bool inward = mode == PK_PTX_RZ || (mode == PK_PTX_RP && sign) || (mode == PK_PTX_RM && !sign);
    size = finite || (inward && exponent != 1024) ? F::most : F::infinity;
  }
  return sign | (unsigned)size;
}
// What the bits are worth.
template <class F>
PK_SIM_INLINE float pk_ptx_widened(unsigned bits) {
  constexpr int least = 2 - (1 << (F::exponent - 1));
  const unsigned size = bits & (F::sign - 1), exponent = size >> F::fraction;
  const unsigned fraction = size & ((1u << F::fraction) - 1);
  const float sign = bits & F::sign ? -1.0f : 1.0f;
  if (F::infinity != F::none && size == F::infinity) return sign * __builtin_inff();
  if (size > F::most) return pk_ptx_no_number(1.0f);
  // The exponent of the last bit.
  const int last = (exponent ? (int)exponent - 1 : 0) + least - F::fraction;
  return sign * (float)__builtin_ldexp((double)(exponent ? fraction | 1u << F::fraction : fraction), last);
}

// Of f16 and bf16.
template <class F>
PK_SIM_INLINE float pk_ptx_value(unsigned short bits) {
  if constexpr (F::exponent == 5) return pk_sim_half_value(bits);
  return __uint_as_float((unsigned)bits << 16);
}
// A float rounded to nearest, to even from the middle.
template <class F>
PK_SIM_INLINE unsigned short pk_ptx_nearest(float x) {
  if (x != x) return 0x7fffu;
  if constexpr (F::exponent == 5) return pk_sim_half_bits(x);
  const unsigned bits = __float_as_uint(x);
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
// Numbers below the least with a full significand as zero.
template <class F>
PK_SIM_INLINE unsigned short pk_ptx_flushed_small(unsigned short bits) {
  return (bits & (F::sign - 1)) < 1u << F::fraction ? bits & F::sign : bits;
}

// The sum of two doubles; where it is none, the odd one of its neighbours, which rounds to fewer bits as the sum would.
PK_SIM_INLINE double pk_ptx_odd_sum(double a, double b) {
  const double sum = __dadd_rn(a, b), part = __dsub_rn(sum, a);
  const double error = __dadd_rn(__dsub_rn(a, __dsub_rn(sum, part)), __dsub_rn(b, part));
  long long bits = __double_as_longlong(sum);
  if (error == 0.0 || error != error || (bits & 1)) return sum;
  return __longlong_as_double(bits + ((error > 0) == (sum > 0) ? 1 : -1));
}
template <class F>
PK_SIM_INLINE unsigned short pk_ptx_fused(unsigned short a, unsigned short b, unsigned short c) {
  const double product = (double)pk_ptx_value<F>(a) * (double)pk_ptx_value<F>(b);
  return (unsigned short)pk_ptx_narrowed<F>(pk_ptx_odd_sum(product, (double)pk_ptx_value<F>(c)), PK_PTX_RN);
}

// The same for both halves of words.
template <class One, class... Words>
PK_SIM_INLINE unsigned pk_ptx_both(One one, Words... words) {
  const unsigned short low = one((unsigned short)words...), high = one((unsigned short)(words >> 16)...);
  return low | (unsigned)high << 16;
}
template <class F>
PK_SIM_INLINE unsigned short pk_ptx_relu(unsigned short bits) {
  return (bits & (F::sign - 1)) > F::infinity ? F::none : bits & F::sign ? 0 : bits;
}
template <class One, class... Bits>
PK_SIM_INLINE unsigned short pk_ptx_one(One one, Bits... bits) {
  return one(bits...);
}

// ---- conversions

PK_SIM_INLINE unsigned pk_ptx_to_tf32(float x, pk_ptx_rounding mode, bool relu, bool finite) {
  if (x != x) return 0x7fffffffu;
  const unsigned bits = pk_ptx_narrowed<pk_ptx_tf32>((double)x, mode, finite) << 13;
  return relu && bits >> 31 ? 0u : bits;
}
// Two numbers rounded to nearest, none beyond the greatest. One that is no number stays none; a format without any has
// its greatest for it.
template <class F>
PK_SIM_INLINE unsigned pk_ptx_packed(float low, float high, bool relu) {
  const unsigned bits = 1 + F::exponent + F::fraction, apart = bits > 4 ? 8 : 4;
  unsigned result = 0;
  for (int i = 0; i < 2; ++i) {
    const float x = i ? high : low;
    unsigned one = pk_ptx_narrowed<F>((double)x, PK_PTX_RN, true);
    if (relu && (one & F::sign) && x == x) one = 0;
    result |= one << apart * i;
  }
  return result;
}
template <class F>
PK_SIM_INLINE unsigned pk_ptx_unpacked(unsigned bits, bool relu) {
  const unsigned apart = 1 + F::exponent + F::fraction > 4 ? 8 : 4;
  unsigned result = 0;
  for (int i = 0; i < 2; ++i) {
    unsigned short one = pk_ptx_nearest<pk_ptx_f16>(pk_ptx_widened<F>(bits >> apart * i & ((1u << apart) - 1)));
    if (relu) one = pk_ptx_relu<pk_ptx_f16>(one);
    result |= (unsigned)one << 16 * i;
  }
  return result;
}
