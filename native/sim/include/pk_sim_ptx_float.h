// pk_sim_ptx_float.h: instructions of inline PTX on float and double that are more than an operator of C++. What a
// device computes approximately is exact here, up to the last bit of the C library's functions.
#pragma once
#pragma GCC system_header

PK_SIM_INLINE double pk_ptx_saturated(double x) { return x >= 1.0 ? 1.0 : x > 0.0 ? x : 0.0; }
PK_SIM_INLINE float pk_ptx_saturated(float x) { return __saturatef(x); }
PK_SIM_INLINE float pk_ptx_no_number(float) { return __uint_as_float(0x7fffffffu); }
PK_SIM_INLINE double pk_ptx_no_number(double) { return __longlong_as_double(0x7fffffffffffffffll); }
PK_SIM_INLINE bool pk_ptx_negative(float x) { return __float_as_int(x) < 0; }
PK_SIM_INLINE bool pk_ptx_negative(double x) { return __double_as_longlong(x) < 0; }

// The smaller or the greater one; -0 is less than +0. One that is no number counts as missing, or spoils the result.
template <class T>
PK_SIM_INLINE T pk_ptx_extreme(T a, T b, bool least, bool spoils) {
  if (a != a || b != b) return spoils || (a != a && b != b) ? pk_ptx_no_number(a) : a != a ? b : a;
  if (a == b) return pk_ptx_negative(a) == least ? a : b;
  return (a < b) == least ? a : b;
}
// The same of magnitudes, with the product of the signs.
PK_SIM_INLINE float pk_ptx_extreme_size(float a, float b, bool least, bool spoils) {
  const bool sign = pk_ptx_negative(a) != pk_ptx_negative(b);
  const float size = pk_ptx_extreme(__builtin_fabsf(a), __builtin_fabsf(b), least, spoils);
  return sign && size == size ? -size : size;
}

enum pk_ptx_test {
  PK_PTX_FINITE,
  PK_PTX_INFINITE,
  PK_PTX_NUMBER,
  PK_PTX_NOT_A_NUMBER,
  PK_PTX_NORMAL,
  PK_PTX_SUBNORMAL
};
template <class T>
PK_SIM_INLINE bool pk_ptx_is(T x, pk_ptx_test what) {
  const T least = sizeof(T) == 4 ? (T)0x1p-126f : (T)0x1p-1022, size = x < 0 ? -x : x;
  const bool number = x == x, infinite = size == (T)__builtin_inf();
  switch (what) {
    case PK_PTX_FINITE:
      return number && !infinite;
    case PK_PTX_INFINITE:
      return infinite;
    case PK_PTX_NUMBER:
      return number;
    case PK_PTX_NOT_A_NUMBER:
      return !number;
    case PK_PTX_NORMAL:
      return number && !infinite && size >= least;
    default:
      return number && size < least;  // zero counts
  }
}

// The double whose lower half is zero.
PK_SIM_INLINE double pk_ptx_upper(double x) {
  return __longlong_as_double(__double_as_longlong(x) & (long long)0xffffffff00000000ull);
}
// rcp.approx and rsqrt.approx of double: of the upper half, as the upper half.
PK_SIM_INLINE double pk_ptx_reciprocal(double x) {
  x = pk_ptx_upper(x);
  return pk_ptx_upper(__builtin_fabs(x) < 0x1p-1022 ? __builtin_copysign(__builtin_inf(), x) : 1.0 / x);
}
PK_SIM_INLINE double pk_ptx_reciprocal_root(double x) {
  x = pk_ptx_upper(x);
  if (__builtin_fabs(x) < 0x1p-1022) return __builtin_copysign(__builtin_inf(), x);
  return x < 0 ? pk_ptx_no_number(x) : pk_ptx_upper(1.0 / __builtin_sqrt(x));
}
