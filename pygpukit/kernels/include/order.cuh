// order.cuh: the order of elements when they are sorted, as unsigned keys: NaN last, -0.0 equal to 0.0, as NumPy.
#pragma once
#include "numeric.cuh"

namespace pk {

// ---- keys: unsigned integers in the elements' order ----

__device__ __forceinline__ unsigned char key_of(unsigned char x) { return x; }  // bool, too
__device__ __forceinline__ unsigned short key_of(unsigned short x) { return x; }
__device__ __forceinline__ unsigned key_of(unsigned x) { return x; }
__device__ __forceinline__ unsigned long long key_of(unsigned long long x) { return x; }
__device__ __forceinline__ unsigned char key_of(signed char x) { return static_cast<unsigned char>(x ^ 0x80); }
__device__ __forceinline__ unsigned short key_of(short x) { return static_cast<unsigned short>(x ^ 0x8000); }
__device__ __forceinline__ unsigned key_of(int x) { return static_cast<unsigned>(x) ^ 0x80000000u; }
__device__ __forceinline__ unsigned long long key_of(long long x) {
  return static_cast<unsigned long long>(x) ^ 0x8000000000000000ull;
}

// The elements keep their bits; only their keys make every NaN one value and the two zeros another.
template <class U>
__device__ __forceinline__ U key_of_float(U bits, U infinity) {
  constexpr U sign = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
  const U magnitude = static_cast<U>(bits & ~sign);
  if (magnitude > infinity) return static_cast<U>(~U(0));
  if (magnitude == 0) return sign;
  return static_cast<U>((bits & sign) != 0 ? ~bits : bits | sign);
}
__device__ __forceinline__ unsigned short key_of(half_t x) { return key_of_float<unsigned short>(x.bits, 0x7c00); }
__device__ __forceinline__ unsigned short key_of(bfloat16_t x) { return key_of_float<unsigned short>(x.bits, 0x7f80); }
__device__ __forceinline__ unsigned key_of(float x) { return key_of_float(__float_as_uint(x), 0x7f800000u); }
__device__ __forceinline__ unsigned long long key_of(double x) {
  return key_of_float(static_cast<unsigned long long>(__double_as_longlong(x)), 0x7ff0000000000000ull);
}

template <class T>
__device__ __forceinline__ bool is_nan(T x) {
  return !(widen(x) == widen(x));
}
// Complex numbers: those without NaN first, then NaN as imaginary, as real part, as both.
template <class R>
__device__ __forceinline__ unsigned nan_class(complex_t<R> x) {
  return (is_nan(x.re) ? 2u : 0u) + (is_nan(x.im) ? 1u : 0u);
}
template <class R>
__device__ __forceinline__ bool is_nan(complex_t<R> x) {
  return nan_class(x) != 0;
}

// ---- digits of 8 bits, the lowest first: what a radix sort looks at, pass by pass ----

template <class T>
struct Digits {
  static constexpr int kPasses = sizeof(T);
  static __device__ __forceinline__ unsigned of(T x, int pass) {
    return static_cast<unsigned>(key_of(x) >> (8 * pass)) & 255u;
  }
};
template <class R>
struct Digits<complex_t<R>> {
  static constexpr int kPasses = 2 * sizeof(R) + 1;
  static __device__ __forceinline__ unsigned of(complex_t<R> x, int pass) {
    constexpr int half = sizeof(R);
    if (pass < half) return Digits<R>::of(x.im, pass);
    if (pass < 2 * half) return Digits<R>::of(x.re, pass - half);
    return nan_class(x);
  }
};

// ---- comparisons ----

template <class T>
__device__ __forceinline__ bool precedes(T a, T b) {
  return key_of(a) < key_of(b);
}
template <class R>
__device__ __forceinline__ bool precedes(complex_t<R> a, complex_t<R> b) {
  const unsigned first = nan_class(a), second = nan_class(b);
  if (first != second) return first < second;
  if (precedes(a.re, b.re)) return true;
  return !precedes(b.re, a.re) && precedes(a.im, b.im);
}

}  // namespace pk
