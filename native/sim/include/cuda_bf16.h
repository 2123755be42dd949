// cuda_bf16.h: __nv_bfloat16 and __nv_bfloat162 on the simulated device.
#pragma once
#pragma GCC system_header

#include "cuda_fp16.h"

// The upper half of a float, rounded to nearest even.
PK_SIM_INLINE unsigned short pk_sim_bfloat16_bits(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

struct __nv_bfloat16_raw {
  unsigned short x;
};
struct __nv_bfloat162_raw {
  unsigned short x, y;
};

struct __align__(2) __nv_bfloat16 {
  PK_SIM_SMALL_MEMBERS(__nv_bfloat16, __nv_bfloat16_raw);
  __nv_bfloat16(float value) : pk_sim_value(pk_sim_bfloat16_bits(value)) {}
  explicit __nv_bfloat16(const __half &value) : __nv_bfloat16((float)value) {}
  operator float() const { return __uint_as_float((unsigned)pk_sim_value << 16); }
};
inline __half::__half(const __nv_bfloat16 &value) : __half((float)value) {}
typedef __nv_bfloat16 nv_bfloat16;

struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  __nv_bfloat162(const __nv_bfloat16 &a, const __nv_bfloat16 &b) : x(a), y(b) {}
  __nv_bfloat162(const __nv_bfloat162_raw &raw) : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
  operator __nv_bfloat162_raw() const { return {x.pk_sim_value, y.pk_sim_value}; }
};
typedef __nv_bfloat162 nv_bfloat162;

PK_SIM_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, bfloat16);
PK_SIM_ELEMENT(__nv_bfloat16, "bfloat16")
PK_SIM_ELEMENT(__nv_bfloat162, "bfloat16x2")

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
PK_SIM_INLINE __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.x, b.x); }
PK_SIM_INLINE __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.y, b.y); }
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80u)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fffu)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001u)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7fu)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000u)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000u)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80u)
