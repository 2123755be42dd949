// pk_sim_intrinsics.h: bit, integer, conversion, fast-math and cache-hint intrinsics.
#pragma once
#pragma GCC system_header

// ---- bits and integers
PK_SIM_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
PK_SIM_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
PK_SIM_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
PK_SIM_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
PK_SIM_INLINE int __ffs(int x) { return __builtin_ffs(x); }
PK_SIM_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
PK_SIM_INLINE unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
PK_SIM_INLINE unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
PK_SIM_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned select = selector >> 4 * i & 15u, byte = (unsigned)(bytes >> 8 * (select & 7u)) & 0xffu;
    result |= (select & 8u ? (byte & 0x80u ? 0xffu : 0u) : byte) << 8 * i;
  }
  return result;
}
PK_SIM_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)((((unsigned long long)high << 32 | low) << (shift & 31u)) >> 32);
}
PK_SIM_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31u));
}
PK_SIM_INLINE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32u ? low : __funnelshift_l(low, high, shift);
}
PK_SIM_INLINE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32u ? high : __funnelshift_r(low, high, shift);
}
PK_SIM_INLINE int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
PK_SIM_INLINE unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
PK_SIM_INLINE long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
PK_SIM_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
PK_SIM_INLINE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
PK_SIM_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
PK_SIM_INLINE unsigned __sad(int x, int y, unsigned z) { return z + (unsigned)(x > y ? x - y : y - x); }
PK_SIM_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x > y ? x - y : y - x); }
PK_SIM_INLINE int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
PK_SIM_INLINE int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
PK_SIM_INLINE unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
PK_SIM_INLINE int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i);
  return c;
}
PK_SIM_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 0xffu) * (b >> 8 * i & 0xffu);
  return c;
}

// ---- the same bits as another type
#define PK_SIM_BITCAST(name, From, To)                         \
  PK_SIM_INLINE To name(From value) {                          \
    To result;                                                 \
    static_assert(sizeof result == sizeof value, "same size"); \
    __builtin_memcpy(&result, &value, sizeof result);          \
    return result;                                             \
  }
PK_SIM_BITCAST(__float_as_int, float, int)
PK_SIM_BITCAST(__float_as_uint, float, unsigned)
PK_SIM_BITCAST(__int_as_float, int, float)
PK_SIM_BITCAST(__uint_as_float, unsigned, float)
PK_SIM_BITCAST(__double_as_longlong, double, long long)
PK_SIM_BITCAST(__longlong_as_double, long long, double)
#undef PK_SIM_BITCAST
PK_SIM_INLINE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
PK_SIM_INLINE int __double2loint(double x) { return (int)__double_as_longlong(x); }
PK_SIM_INLINE double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)high << 32 | (unsigned)low);
}

// ---- conversions to integers: to nearest even, to zero, up, down; out of range gives the nearest integer, NaN gives 0
template <class To>
PK_SIM_INLINE To pk_sim_saturated(double x, double low, double high, To minimum, To maximum) {
  return x != x ? (To)0 : x <= low ? minimum : x >= high ? maximum : (To)x;
}
#define PK_SIM_TO_INTEGER(from, From, to, To, low, high, minimum, maximum)        \
  PK_SIM_INLINE To __##from##2##to##_rn(From x) {                                 \
    return pk_sim_saturated<To>(__builtin_rint(x), low, high, minimum, maximum);  \
  }                                                                               \
  PK_SIM_INLINE To __##from##2##to##_rz(From x) {                                 \
    return pk_sim_saturated<To>(__builtin_trunc(x), low, high, minimum, maximum); \
  }                                                                               \
  PK_SIM_INLINE To __##from##2##to##_ru(From x) {                                 \
    return pk_sim_saturated<To>(__builtin_ceil(x), low, high, minimum, maximum);  \
  }                                                                               \
  PK_SIM_INLINE To __##from##2##to##_rd(From x) {                                 \
    return pk_sim_saturated<To>(__builtin_floor(x), low, high, minimum, maximum); \
  }
#define PK_SIM_TO_INTEGERS(from, From)                                                              \
  PK_SIM_TO_INTEGER(from, From, int, int, -2147483648.0, 2147483647.0, -2147483647 - 1, 2147483647) \
  PK_SIM_TO_INTEGER(from, From, uint, unsigned, 0.0, 4294967295.0, 0u, 4294967295u)                 \
  PK_SIM_TO_INTEGER(from, From, ll, long long, -9223372036854775808.0, 9223372036854775808.0,       \
                    -9223372036854775807LL - 1, 9223372036854775807LL)                              \
  PK_SIM_TO_INTEGER(from, From, ull, unsigned long long, 0.0, 18446744073709551616.0, 0ull, 18446744073709551615ull)
PK_SIM_TO_INTEGERS(float, float)
PK_SIM_TO_INTEGERS(double, double)
#undef PK_SIM_TO_INTEGERS
#undef PK_SIM_TO_INTEGER
PK_SIM_INLINE float __int2float_rn(int x) { return (float)x; }
PK_SIM_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
PK_SIM_INLINE float __ll2float_rn(long long x) { return (float)x; }
PK_SIM_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
PK_SIM_INLINE double __int2double_rn(int x) { return x; }
PK_SIM_INLINE double __uint2double_rn(unsigned x) { return x; }
PK_SIM_INLINE double __ll2double_rn(long long x) { return (double)x; }
PK_SIM_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }
PK_SIM_INLINE float __double2float_rn(double x) { return (float)x; }

// ---- arithmetic that is never fused: the empty statement hides where the value came from
#if defined(__x86_64__)
#define PK_SIM_OPAQUE(value) asm("" : "+x"(value))
#elif defined(__aarch64__)
#define PK_SIM_OPAQUE(value) asm("" : "+w"(value))
#else
#define PK_SIM_OPAQUE(value) asm("" : "+m"(value))
#endif
#define PK_SIM_UNFUSED(name, T, ...) \
  PK_SIM_INLINE T name(T a, T b) {   \
    T result = __VA_ARGS__;          \
    PK_SIM_OPAQUE(result);           \
    return result;                   \
  }
PK_SIM_UNFUSED(__fadd_rn, float, a + b)
PK_SIM_UNFUSED(__fsub_rn, float, a - b)
PK_SIM_UNFUSED(__fmul_rn, float, a *b)
PK_SIM_UNFUSED(__fdiv_rn, float, a / b)
PK_SIM_UNFUSED(__dadd_rn, double, a + b)
PK_SIM_UNFUSED(__dsub_rn, double, a - b)
PK_SIM_UNFUSED(__dmul_rn, double, a *b)
PK_SIM_UNFUSED(__ddiv_rn, double, a / b)
#undef PK_SIM_UNFUSED
#undef PK_SIM_OPAQUE
PK_SIM_INLINE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
PK_SIM_INLINE double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
PK_SIM_INLINE float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
PK_SIM_INLINE double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
PK_SIM_INLINE float __frcp_rn(float x) { return 1.0f / x; }
PK_SIM_INLINE double __drcp_rn(double x) { return 1.0 / x; }
PK_SIM_INLINE float __frsqrt_rn(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }

// ---- fast mathematics: the exact functions, so more accurate than a GPU
PK_SIM_INLINE float __expf(float x) { return __builtin_expf(x); }
PK_SIM_INLINE float __exp10f(float x) { return exp10f(x); }
PK_SIM_INLINE float __logf(float x) { return __builtin_logf(x); }
PK_SIM_INLINE float __log2f(float x) { return __builtin_log2f(x); }
PK_SIM_INLINE float __log10f(float x) { return __builtin_log10f(x); }
PK_SIM_INLINE float __sinf(float x) { return __builtin_sinf(x); }
PK_SIM_INLINE float __cosf(float x) { return __builtin_cosf(x); }
PK_SIM_INLINE float __tanf(float x) { return __builtin_tanf(x); }
PK_SIM_INLINE float __tanhf(float x) { return __builtin_tanhf(x); }
PK_SIM_INLINE void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
PK_SIM_INLINE float __powf(float x, float y) { return __builtin_powf(x, y); }
PK_SIM_INLINE float __fdividef(float x, float y) { return x / y; }
PK_SIM_INLINE float fdividef(float x, float y) { return x / y; }
PK_SIM_INLINE float __saturatef(float x) { return x >= 1.0f ? 1.0f : x > 0.0f ? x : 0.0f; }

// ---- loads and stores with cache hints are loads and stores
#define PK_SIM_LOAD(name)                  \
  template <class T>                       \
  PK_SIM_INLINE T name(const T *address) { \
    return *address;                       \
  }
#define PK_SIM_STORE(name)                       \
  template <class T>                             \
  PK_SIM_INLINE void name(T *address, T value) { \
    *address = value;                            \
  }
PK_SIM_LOAD(__ldg)
PK_SIM_LOAD(__ldca)
PK_SIM_LOAD(__ldcg)
PK_SIM_LOAD(__ldcs)
PK_SIM_LOAD(__ldlu)
PK_SIM_LOAD(__ldcv)
PK_SIM_STORE(__stwb)
PK_SIM_STORE(__stcg)
PK_SIM_STORE(__stcs)
PK_SIM_STORE(__stwt)
#undef PK_SIM_LOAD
#undef PK_SIM_STORE

// ---- hints
#ifndef __clang__
#define __builtin_assume(condition) ((void)((condition) ? 0 : (__builtin_unreachable(), 0)))
#endif
#define __assume(condition) __builtin_assume(condition)
