// cuda_fp16.h: half and half2 on the simulated device.
#pragma once
#pragma GCC system_header

#include "pk_sim_half.h"
#include "pk_sim_small_float.h"

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};

struct __nv_bfloat16;
struct __align__(2) __half {
  PK_SIM_SMALL_MEMBERS(__half, __half_raw);
  __half(float value) : pk_sim_value(pk_sim_half_bits(value)) {}
  explicit __half(const __nv_bfloat16 &value);  // in cuda_bf16.h
  operator float() const { return pk_sim_half_value(pk_sim_value); }
};
typedef __half half;
typedef __half __nv_half;
typedef __half nv_half;

struct __align__(4) __half2 {
  __half x, y;
  __half2() = default;
  __half2(const __half &a, const __half &b) : x(a), y(b) {}
  __half2(const __half2_raw &raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
  operator __half2_raw() const { return {x.pk_sim_value, y.pk_sim_value}; }
};
typedef __half2 half2;
typedef __half2 __nv_half2;
typedef __half2 nv_half2;

PK_SIM_SMALL_FLOAT(__half, __half2, half);
PK_SIM_ELEMENT(__half, "float16")
PK_SIM_ELEMENT(__half2, "float16x2")

PK_SIM_INLINE unsigned short __half_as_ushort(__half a) { return a.pk_sim_value; }
PK_SIM_INLINE short __half_as_short(__half a) { return (short)a.pk_sim_value; }
PK_SIM_INLINE __half __ushort_as_half(unsigned short bits) { return pk_sim_from_bits<__half>(bits); }
PK_SIM_INLINE __half __short_as_half(short bits) { return pk_sim_from_bits<__half>((unsigned short)bits); }
PK_SIM_INLINE __half2 make_half2(__half a, __half b) { return __half2(a, b); }
PK_SIM_INLINE __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
PK_SIM_INLINE __half2 __half2half2(__half a) { return __half2(a, a); }
PK_SIM_INLINE __half2 __float2half2_rn(float a) { return __half2(__half(a), __half(a)); }
PK_SIM_INLINE __half2 __floats2half2_rn(float a, float b) { return __half2(__half(a), __half(b)); }
PK_SIM_INLINE __half2 __float22half2_rn(float2 a) { return __floats2half2_rn(a.x, a.y); }
PK_SIM_INLINE float2 __half22float2(__half2 a) { return make_float2((float)a.x, (float)a.y); }
PK_SIM_INLINE __half __low2half(__half2 a) { return a.x; }
PK_SIM_INLINE __half __high2half(__half2 a) { return a.y; }
PK_SIM_INLINE __half2 __low2half2(__half2 a) { return __half2(a.x, a.x); }
PK_SIM_INLINE __half2 __high2half2(__half2 a) { return __half2(a.y, a.y); }
PK_SIM_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
PK_SIM_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001u)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bffu)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000u)
#define CUDART_INF_FP16 __ushort_as_half(0x7c00u)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fffu)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000u)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00u)
