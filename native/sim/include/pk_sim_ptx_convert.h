// pk_sim_ptx_convert.h: conversions of inline PTX from and to integers.
#pragma once
#pragma GCC system_header

#include "pk_sim_ptx_float.h"

template <class T>
struct pk_ptx_range {
  static constexpr bool has_sign = (T)-1 < (T)0;
  static constexpr T least = has_sign ? (T)(1ull << (8 * sizeof(T) - 1)) : (T)0;
  static constexpr T most = has_sign ? (T)((1ull << (8 * sizeof(T) - 1)) - 1) : (T)-1;
};

// A whole number as an integer: the nearest one there is. No number gives 0; with 64 bits on either side, the highest
// bit alone.
template <class To, class From>
PK_SIM_INLINE To pk_ptx_to_integer(From x, bool wide) {
  if (x != x) return wide && sizeof(To) >= 4 ? (To)(1ull << (8 * sizeof(To) - 1)) : (To)0;
  return x <= (From)pk_ptx_range<To>::least  ? pk_ptx_range<To>::least
         : x >= (From)pk_ptx_range<To>::most ? pk_ptx_range<To>::most
                                             : (To)x;
}

// The nearest integer of another type.
template <class To, class From>
PK_SIM_INLINE To pk_ptx_limited(From x) {
  const __int128 wide = x;
  return wide < pk_ptx_range<To>::least  ? pk_ptx_range<To>::least
         : wide > pk_ptx_range<To>::most ? pk_ptx_range<To>::most
                                         : (To)x;
}

// An integer as a double; one of more digits becomes the odd one of its neighbours, which rounds to fewer bits as the
// integer would.
template <class T>
PK_SIM_INLINE double pk_ptx_odd(T x) {
  const bool negative = x < 0;
  const unsigned long long size = negative ? 0ull - (unsigned long long)x : (unsigned long long)x;
  const int shift = size >> 53 ? 11 - __builtin_clzll(size) : 0;
  const unsigned long long kept = size >> shift | ((size & ((1ull << shift) - 1)) != 0);
  const double result = (double)kept * (double)(1ull << shift);
  return negative ? -result : result;
}
