// cuda_bf16.h: __nv_bfloat16 and __nv_bfloat162 on the simulated device.
#pragma once
#pragma GCC system_header

#include "pk_sim_small_float.h"

// The upper half of a float, rounded to nearest even.
PK_SIM_INLINE unsigned short pk_sim_bfloat16_bits(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

struct __align__(2) __nv_bfloat16 {
  unsigned short pk_sim_value;
  __nv_bfloat16() = default;
  __nv_bfloat16(float value) : pk_sim_value(pk_sim_bfloat16_bits(value)) {}
  __nv_bfloat16(double value) : pk_sim_value(pk_sim_bfloat16_bits(pk_sim_round_to_odd(value))) {}
  __nv_bfloat16(int value) : __nv_bfloat16((double)value) {}
  __nv_bfloat16(unsigned value) : __nv_bfloat16((double)value) {}
  __nv_bfloat16(short value) : __nv_bfloat16((float)value) {}
  __nv_bfloat16(unsigned short value) : __nv_bfloat16((float)value) {}
  __nv_bfloat16(long value) : __nv_bfloat16((double)value) {}
  __nv_bfloat16(unsigned long value) : __nv_bfloat16((double)value) {}
  __nv_bfloat16(long long value) : __nv_bfloat16((double)value) {}
  __nv_bfloat16(unsigned long long value) : __nv_bfloat16((double)value) {}
  operator float() const { return __uint_as_float((unsigned)pk_sim_value << 16); }
  static __nv_bfloat16 pk_sim_from_double(double value) { return __nv_bfloat16(value); }
};
typedef __nv_bfloat16 nv_bfloat16;

struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
};
typedef __nv_bfloat162 nv_bfloat162;

PK_SIM_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162)

PK_SIM_INLINE float __bfloat162float(__nv_bfloat16 a) { return (float)a; }
PK_SIM_INLINE __nv_bfloat16 __float2bfloat16(float a) { return __nv_bfloat16(a); }
PK_SIM_INLINE __nv_bfloat16 __float2bfloat16_rn(float a) { return __nv_bfloat16(a); }
PK_SIM_INLINE __nv_bfloat16 __double2bfloat16(double a) { return __nv_bfloat16(a); }
PK_SIM_INLINE __nv_bfloat16 __int2bfloat16_rn(int a) { return __nv_bfloat16(a); }
PK_SIM_INLINE __nv_bfloat16 __uint2bfloat16_rn(unsigned a) { return __nv_bfloat16(a); }
PK_SIM_INLINE int __bfloat162int_rn(__nv_bfloat16 a) { return __float2int_rn((float)a); }
PK_SIM_INLINE int __bfloat162int_rz(__nv_bfloat16 a) { return __float2int_rz((float)a); }
PK_SIM_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.pk_sim_value; }
PK_SIM_INLINE short __bfloat16_as_short(__nv_bfloat16 a) { return (short)a.pk_sim_value; }
PK_SIM_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return pk_sim_from_bits<__nv_bfloat16>(bits); }
PK_SIM_INLINE __nv_bfloat16 __short_as_bfloat16(short bits) {
  return pk_sim_from_bits<__nv_bfloat16>((unsigned short)bits);
}
PK_SIM_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
PK_SIM_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
PK_SIM_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
PK_SIM_INLINE __nv_bfloat162 __float2bfloat162_rn(float a) {
  return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(a));
}
PK_SIM_INLINE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b));
}
PK_SIM_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 a) { return __floats2bfloat162_rn(a.x, a.y); }
PK_SIM_INLINE float2 __bfloat1622float2(__nv_bfloat162 a) { return make_float2((float)a.x, (float)a.y); }
PK_SIM_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
PK_SIM_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
PK_SIM_INLINE __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.x, a.x); }
PK_SIM_INLINE __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.y); }
