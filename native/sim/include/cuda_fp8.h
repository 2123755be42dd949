// cuda_fp8.h: the 8-bit floating-point types e4m3 and e5m2, their pairs and fours, and conversions, on the simulated
// device.
#pragma once
#pragma GCC system_header

#include "cuda_bf16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

// Rounds to nearest even. The quantum is the distance of neighbours around the value: below the smallest normal number
// that of the subnormals. Rounding to a multiple of it may carry into the exponent, as it should.
PK_SIM_INLINE __nv_fp8_storage_t __nv_cvt_double_to_fp8(double value, __nv_saturation_t saturate,
                                                        __nv_fp8_interpretation_t kind) {
  const int mantissa_bits = kind == __NV_E4M3 ? 3 : 2, bias = kind == __NV_E4M3 ? 7 : 15;
  const double largest = kind == __NV_E4M3 ? 448.0 : 57344.0;
  const unsigned long long bits = (unsigned long long)__double_as_longlong(value);
  const unsigned sign = (unsigned)(bits >> 63) << 7;
  if (value != value) return kind == __NV_E4M3 ? sign | 0x7fu : sign | 0x7eu | (unsigned)(bits >> 50 & 3u);
  const double size = __builtin_fabs(value);
  int exponent = (int)(bits >> 52 & 0x7ffu) - 1023;
  if (exponent < 1 - bias) exponent = 1 - bias;
  const double quantum = __longlong_as_double((long long)(exponent - mantissa_bits + 1023) << 52);
  const double rounded = size > 1e6 ? size : __builtin_rint(size / quantum) * quantum;
  if (rounded > largest) {
    if (saturate == __NV_SATFINITE) return sign | (kind == __NV_E4M3 ? 0x7eu : 0x7bu);
    return sign | (kind == __NV_E4M3 ? 0x7fu : 0x7cu);
  }
  // As a whole number of quanta of the subnormals, or as mantissa and exponent.
  const double least = __longlong_as_double((long long)(1 - bias + 1023) << 52);
  if (rounded < least) return sign | (unsigned)(rounded / quantum);
  const unsigned long long whole = (unsigned long long)__double_as_longlong(rounded);
  return sign | (unsigned)(((whole >> 52) - 1023 + bias) << mantissa_bits |
                           (whole >> (52 - mantissa_bits) & ((1 << mantissa_bits) - 1)));
}
// A float that is no number becomes the positive one.
PK_SIM_INLINE __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturate,
                                                       __nv_fp8_interpretation_t kind) {
  return value != value ? 0x7fu : __nv_cvt_double_to_fp8(value, saturate, kind);
}
PK_SIM_INLINE __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw value, __nv_saturation_t saturate,
                                                         __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8((float)__half(value), saturate, kind);
}
PK_SIM_INLINE __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw value, __nv_saturation_t saturate,
                                                             __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8((float)__nv_bfloat16(value), saturate, kind);
}
// Every value of either kind is a half.
PK_SIM_INLINE __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t kind) {
  const unsigned size = bits & 0x7fu, sign = (bits & 0x80u) << 8;
  if (size > (kind == __NV_E4M3 ? 0x7eu : 0x7cu)) return {0x7fff};
  if (kind == __NV_E5M2) return {(unsigned short)(bits << 8)};
  // The same digits under half's exponent, which is 8 higher: multiplying by 2^8 corrects it, subnormals included.
  const float value = pk_sim_half_value((unsigned short)(size << 7)) * 256.0f;
  return {(unsigned short)(sign | pk_sim_half_bits(value))};
}
PK_SIM_INLINE __nv_bfloat16_raw __nv_cvt_fp8_to_bf16raw(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t kind) {
  return __nv_bfloat16((float)__half(__nv_cvt_fp8_to_halfraw(bits, kind)));
}

// ---- pairs: the first in the low byte
#define PK_SIM_FP8_PAIR(name, Pair, one, first, second)                                                             \
  PK_SIM_INLINE __nv_fp8x2_storage_t name(Pair value, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) { \
    return (__nv_fp8x2_storage_t)(one(second, saturate, kind) << 8 | one(first, saturate, kind));                   \
  }
PK_SIM_FP8_PAIR(__nv_cvt_double2_to_fp8x2, double2, __nv_cvt_double_to_fp8, value.x, value.y)
PK_SIM_FP8_PAIR(__nv_cvt_float2_to_fp8x2, float2, __nv_cvt_float_to_fp8, value.x, value.y)
PK_SIM_FP8_PAIR(__nv_cvt_halfraw2_to_fp8x2, __half2_raw, __nv_cvt_halfraw_to_fp8, __half_raw{value.x},
                __half_raw{value.y})
PK_SIM_FP8_PAIR(__nv_cvt_bfloat16raw2_to_fp8x2, __nv_bfloat162_raw, __nv_cvt_bfloat16raw_to_fp8,
                __nv_bfloat16_raw{value.x}, __nv_bfloat16_raw{value.y})
#undef PK_SIM_FP8_PAIR
PK_SIM_INLINE __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t bits, __nv_fp8_interpretation_t kind) {
  return {__nv_cvt_fp8_to_halfraw((unsigned char)bits, kind).x,
          __nv_cvt_fp8_to_halfraw((unsigned char)(bits >> 8), kind).x};
}
PK_SIM_INLINE __nv_bfloat162_raw __nv_cvt_fp8x2_to_bf16raw2(__nv_fp8x2_storage_t bits, __nv_fp8_interpretation_t kind) {
  return {__nv_cvt_fp8_to_bf16raw((unsigned char)bits, kind).x,
          __nv_cvt_fp8_to_bf16raw((unsigned char)(bits >> 8), kind).x};
}

// ---- the types; constructors saturate, conversions to integers too
#define PK_SIM_FP8_FROM(Type, From, kind) \
  explicit Type(From value) : __x(__nv_cvt_float_to_fp8((float)value, __NV_SATFINITE, kind)) {}
#define PK_SIM_FP8_TO(I) \
  explicit operator I() const { return pk_sim_saturated<I>(__builtin_truncf((float)*this), false); }
#define PK_SIM_FP8(kind, Kind)                                                                                       \
  struct __nv_fp8_##kind {                                                                                           \
    __nv_fp8_storage_t __x;                                                                                          \
    __nv_fp8_##kind() = default;                                                                                     \
    explicit __nv_fp8_##kind(__half value) : __x(__nv_cvt_halfraw_to_fp8(value, __NV_SATFINITE, Kind)) {}            \
    explicit __nv_fp8_##kind(__nv_bfloat16 value) : __x(__nv_cvt_bfloat16raw_to_fp8(value, __NV_SATFINITE, Kind)) {} \
    explicit __nv_fp8_##kind(double value) : __x(__nv_cvt_double_to_fp8(value, __NV_SATFINITE, Kind)) {}             \
    PK_SIM_FP8_FROM(__nv_fp8_##kind, float, Kind)                                                                    \
    PK_SIM_FP8_FROM(__nv_fp8_##kind, short, Kind)                                                                    \
    PK_SIM_FP8_FROM(__nv_fp8_##kind, unsigned short, Kind)                                                           \
    PK_SIM_FP8_FROM(__nv_fp8_##kind, int, Kind)                                                                      \
    PK_SIM_FP8_FROM(__nv_fp8_##kind, unsigned, Kind)                                                                 \
    PK_SIM_FP8_FROM(__nv_fp8_##kind, long, Kind)                                                                     \
    PK_SIM_FP8_FROM(__nv_fp8_##kind, unsigned long, Kind)                                                            \
    PK_SIM_FP8_FROM(__nv_fp8_##kind, long long, Kind)                                                                \
    PK_SIM_FP8_FROM(__nv_fp8_##kind, unsigned long long, Kind)                                                       \
    explicit operator __half() const { return __half(__nv_cvt_fp8_to_halfraw(__x, Kind)); }                          \
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(__nv_cvt_fp8_to_bf16raw(__x, Kind)); }            \
    explicit operator float() const { return (float)__half(__nv_cvt_fp8_to_halfraw(__x, Kind)); }                    \
    explicit operator double() const { return (double)(float)*this; }                                                \
    explicit operator bool() const { return (__x & 0x7fu) != 0; }                                                    \
    PK_SIM_FP8_TO(char)                                                                                              \
    PK_SIM_FP8_TO(signed char)                                                                                       \
    PK_SIM_FP8_TO(unsigned char)                                                                                     \
    PK_SIM_FP8_TO(short)                                                                                             \
    PK_SIM_FP8_TO(unsigned short)                                                                                    \
    PK_SIM_FP8_TO(int)                                                                                               \
    PK_SIM_FP8_TO(unsigned)                                                                                          \
    PK_SIM_FP8_TO(long)                                                                                              \
    PK_SIM_FP8_TO(unsigned long)                                                                                     \
    PK_SIM_FP8_TO(long long)                                                                                         \
    PK_SIM_FP8_TO(unsigned long long)                                                                                \
  };                                                                                                                 \
  struct __align__(2) __nv_fp8x2_##kind {                                                                            \
    __nv_fp8x2_storage_t __x;                                                                                        \
    __nv_fp8x2_##kind() = default;                                                                                   \
    explicit __nv_fp8x2_##kind(__half2 value) : __x(__nv_cvt_halfraw2_to_fp8x2(value, __NV_SATFINITE, Kind)) {}      \
    explicit __nv_fp8x2_##kind(__nv_bfloat162 value)                                                                 \
        : __x(__nv_cvt_bfloat16raw2_to_fp8x2(value, __NV_SATFINITE, Kind)) {}                                        \
    explicit __nv_fp8x2_##kind(float2 value) : __x(__nv_cvt_float2_to_fp8x2(value, __NV_SATFINITE, Kind)) {}         \
    explicit __nv_fp8x2_##kind(double2 value) : __x(__nv_cvt_double2_to_fp8x2(value, __NV_SATFINITE, Kind)) {}       \
    explicit operator __half2() const { return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, Kind)); }                     \
    explicit operator float2() const { return __half22float2((__half2) * this); }                                    \
  };                                                                                                                 \
  struct __align__(4) __nv_fp8x4_##kind {                                                                            \
    __nv_fp8x4_storage_t __x;                                                                                        \
    __nv_fp8x4_##kind() = default;                                                                                   \
    explicit __nv_fp8x4_##kind(__half2 low, __half2 high)                                                            \
        : __x((unsigned)__nv_fp8x2_##kind(high).__x << 16 | __nv_fp8x2_##kind(low).__x) {}                           \
    explicit __nv_fp8x4_##kind(__nv_bfloat162 low, __nv_bfloat162 high)                                              \
        : __x((unsigned)__nv_fp8x2_##kind(high).__x << 16 | __nv_fp8x2_##kind(low).__x) {}                           \
    explicit __nv_fp8x4_##kind(float4 value)                                                                         \
        : __x((unsigned)__nv_fp8x2_##kind(make_float2(value.z, value.w)).__x << 16 |                                 \
              __nv_fp8x2_##kind(make_float2(value.x, value.y)).__x) {}                                               \
    explicit __nv_fp8x4_##kind(double4 value)                                                                        \
        : __x((unsigned)__nv_fp8x2_##kind(make_double2(value.z, value.w)).__x << 16 |                                \
              __nv_fp8x2_##kind(make_double2(value.x, value.y)).__x) {}                                              \
    explicit operator float4() const {                                                                               \
      __nv_fp8x2_##kind low, high;                                                                                   \
      low.__x = (unsigned short)__x;                                                                                 \
      high.__x = (unsigned short)(__x >> 16);                                                                        \
      const float2 a = (float2)low, b = (float2)high;                                                                \
      return make_float4(a.x, a.y, b.x, b.y);                                                                        \
    }                                                                                                                \
  };
PK_SIM_FP8(e4m3, __NV_E4M3);
PK_SIM_FP8(e5m2, __NV_E5M2);
#undef PK_SIM_FP8
#undef PK_SIM_FP8_FROM
#undef PK_SIM_FP8_TO
PK_SIM_ELEMENT(__nv_fp8_e4m3, "float8_e4m3")
PK_SIM_ELEMENT(__nv_fp8_e5m2, "float8_e5m2")
