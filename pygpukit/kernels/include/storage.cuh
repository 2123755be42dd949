// storage.cuh: conversion to and from the types that only store: OCP's fp8 (E4M3, E5M2) and fp4 (E2M1), and int4.
#pragma once
#include "numeric.cuh"

namespace pk {

// A sign, E bits of exponent and M bits of mantissa in the low bits of a byte. Codes above kLargest, of 7 bits, are no
// numbers; what is too large becomes kOverflow, NaN becomes kNan.
template <int Exponent, int Mantissa, int Largest, int Overflow, int Nan>
struct small_float_t {
  static constexpr int kMantissa = Mantissa, kBias = (1 << (Exponent - 1)) - 1, kSign = Exponent + Mantissa;
  static constexpr unsigned kLargest = Largest, kOverflow = Overflow, kNan = Nan;
  unsigned char bits;
};
using e4m3_t = small_float_t<4, 3, 0x7e, 0x7f, 0x7f>;  // no infinity
using e5m2_t = small_float_t<5, 2, 0x7b, 0x7c, 0x7e>;
using e2m1_t = small_float_t<2, 1, 0x7, 0x7, 0x7>;  // neither infinity nor NaN

struct int4_t {
  signed char bits;  // -8 to 7; on reading the low 4 bits count
};

template <int... P>
__device__ __forceinline__ float widen(small_float_t<P...> value) {
  using F = small_float_t<P...>;
  const unsigned code = value.bits & ((1u << F::kSign) - 1), sign = (value.bits >> F::kSign & 1u) << 31;
  if (code > F::kLargest)
    return __uint_as_float(sign | (F::kOverflow != F::kNan && code == F::kOverflow ? 0x7f800000u : 0x7fc00000u));
  // The exponent as that of a float, subnormal or not; the product, exact, puts the bias right.
  const float scale = __uint_as_float(static_cast<unsigned>(254 - F::kBias) << 23);
  return __uint_as_float(sign | __float_as_uint(__uint_as_float(code << (23 - F::kMantissa)) * scale));
}
__device__ __forceinline__ int widen(int4_t value) { return ((value.bits & 15) ^ 8) - 8; }

// Rounded to nearest even.
template <class F>
__device__ __forceinline__ F to_small_float(float value) {
  const unsigned bits = __float_as_uint(value), sign = bits >> 31 << F::kSign, magnitude = bits & 0x7fffffffu;
  constexpr int kDrop = 23 - F::kMantissa;
  unsigned code;
  if (magnitude > 0x7f800000u) {
    code = F::kNan;
    return {static_cast<unsigned char>(F::kLargest == F::kNan ? code : code | sign)};
  }
  if (magnitude >> 23 <= 127 - F::kBias) {  // subnormal: a sum whose last bit is the smallest number's
    const unsigned magic = static_cast<unsigned>(127 - F::kBias + 1 + kDrop) << 23;
    code = __float_as_uint(__uint_as_float(magnitude) + __uint_as_float(magic)) - magic;
  } else {
    const unsigned rounded = magnitude + ((1u << (kDrop - 1)) - 1) + (magnitude >> kDrop & 1u);
    code = (rounded >> kDrop) - (static_cast<unsigned>(127 - F::kBias) << F::kMantissa);
  }
  return {static_cast<unsigned char>((code > F::kLargest ? F::kOverflow : code) | sign)};
}

__device__ __forceinline__ float rounded_once(float value) { return value; }
template <class S>
__device__ __forceinline__ float rounded_once(S value) {
  return to_odd(static_cast<double>(value));
}

template <int... P>
struct convert<small_float_t<P...>> {
  using F = small_float_t<P...>;
  template <class S>
  static __device__ __forceinline__ F from(S value) {
    return to_small_float<F>(rounded_once(widen(value)));
  }
  template <class R>
  static __device__ __forceinline__ F from(complex_t<R> value) {
    return to_small_float<F>(rounded_once(value.re));
  }
};

// Integers wrap. Floats are truncated and, as nothing else says what they become, saturate; NaN becomes 0.
template <class S>
__device__ __forceinline__ int4_t to_int4(S value) {
  return {static_cast<signed char>(((static_cast<int>(value) & 15) ^ 8) - 8)};
}
__device__ __forceinline__ int4_t to_int4(double value) {
  return {static_cast<signed char>(value >= 7 ? 7 : value <= -8 ? -8 : value == value ? static_cast<int>(value) : 0)};
}
__device__ __forceinline__ int4_t to_int4(float value) { return to_int4(static_cast<double>(value)); }

template <>
struct convert<int4_t> {
  template <class S>
  static __device__ __forceinline__ int4_t from(S value) {
    return to_int4(widen(value));
  }
  template <class R>
  static __device__ __forceinline__ int4_t from(complex_t<R> value) {
    return to_int4(value.re);
  }
};

}  // namespace pk
