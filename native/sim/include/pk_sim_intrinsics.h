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
    result |= ((unsigned)(bytes >> 8 * (selector >> 4 * i & 7u)) & 0xffu) << 8 * i;  // 3 bits count, unlike prmt's 4
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
PK_SIM_INLINE unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
PK_SIM_INLINE unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
PK_SIM_INLINE int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i);
  return c;
}
PK_SIM_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 0xffu) * (b >> 8 * i & 0xffu);
  return c;
}
PK_SIM_INLINE int __dp4a(char4 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
PK_SIM_INLINE unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return c + (unsigned)(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
// Two 16-bit numbers by two of the four 8-bit ones.
PK_SIM_INLINE int __dp2a_lo(int a, int b, int c) {
  return c + (short)a * (signed char)b + (a >> 16) * (signed char)(b >> 8);
}
PK_SIM_INLINE int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
PK_SIM_INLINE unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return c + (a & 0xffffu) * (b & 0xffu) + (a >> 16) * (b >> 8 & 0xffu);
}
PK_SIM_INLINE unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }
PK_SIM_INLINE int __dp2a_lo(short2 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y; }
PK_SIM_INLINE int __dp2a_hi(short2 a, char4 b, int c) { return c + a.x * b.z + a.y * b.w; }
PK_SIM_INLINE unsigned __dp2a_lo(ushort2 a, uchar4 b, unsigned c) {
  return c + (unsigned)a.x * b.x + (unsigned)a.y * b.y;
}
PK_SIM_INLINE unsigned __dp2a_hi(ushort2 a, uchar4 b, unsigned c) {
  return c + (unsigned)a.x * b.z + (unsigned)a.y * b.w;
}
// The place of a set bit: that of rank |offset|, counted from base up or down.
PK_SIM_INLINE unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return mask >> (base & 31u) & 1u ? base : ~0u;
  const int step = offset > 0 ? 1 : -1;
  int left = offset > 0 ? offset : -offset;
  for (int at = (int)base; at >= 0 && at < 32; at += step)
    if ((mask >> at & 1u) && --left == 0) return (unsigned)at;
  return ~0u;
}
PK_SIM_INLINE unsigned short __nv_bswap16(unsigned short x) { return __builtin_bswap16(x); }
PK_SIM_INLINE unsigned __nv_bswap32(unsigned x) { return __builtin_bswap32(x); }
PK_SIM_INLINE unsigned long long __nv_bswap64(unsigned long long x) { return __builtin_bswap64(x); }

// ---- addresses: one kind for all memory
PK_SIM_INLINE size_t __cvta_generic_to_shared(const void *address) { return (size_t)address; }
PK_SIM_INLINE size_t __cvta_generic_to_global(const void *address) { return (size_t)address; }
PK_SIM_INLINE size_t __cvta_generic_to_constant(const void *address) { return (size_t)address; }
PK_SIM_INLINE size_t __cvta_generic_to_local(const void *address) { return (size_t)address; }
PK_SIM_INLINE void *__cvta_shared_to_generic(size_t address) { return (void *)address; }
PK_SIM_INLINE void *__cvta_global_to_generic(size_t address) { return (void *)address; }
PK_SIM_INLINE void *__cvta_constant_to_generic(size_t address) { return (void *)address; }
PK_SIM_INLINE void *__cvta_local_to_generic(size_t address) { return (void *)address; }

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

// ---- conversions to integers: what is out of range gives the nearest integer; NaN gives 0, or the integer with only
// its highest bit set when either type has 64 bits
template <class To>
PK_SIM_INLINE To pk_sim_saturated(double x, bool wide) {
  constexpr unsigned long long top = 1ull << (8 * sizeof(To) - 1);
  constexpr bool is_signed = (To)-1 < (To)0;
  constexpr To least = is_signed ? (To)top : (To)0, most = is_signed ? (To)(top - 1) : (To)-1;
  if (x != x) return wide || sizeof(To) == 8 ? (To)top : (To)0;
  return x <= (double)least ? least : x >= (double)most ? most : (To)x;
}
#define PK_SIM_TO_INTEGER(from, From, to, To)                                                                          \
  PK_SIM_INLINE To __##from##2##to##_rn(From x) { return pk_sim_saturated<To>(__builtin_rint(x), sizeof(From) == 8); } \
  PK_SIM_INLINE To __##from##2##to##_rz(From x) {                                                                      \
    return pk_sim_saturated<To>(__builtin_trunc(x), sizeof(From) == 8);                                                \
  }                                                                                                                    \
  PK_SIM_INLINE To __##from##2##to##_ru(From x) { return pk_sim_saturated<To>(__builtin_ceil(x), sizeof(From) == 8); } \
  PK_SIM_INLINE To __##from##2##to##_rd(From x) { return pk_sim_saturated<To>(__builtin_floor(x), sizeof(From) == 8); }
#define PK_SIM_TO_INTEGERS(from, From)          \
  PK_SIM_TO_INTEGER(from, From, int, int)       \
  PK_SIM_TO_INTEGER(from, From, uint, unsigned) \
  PK_SIM_TO_INTEGER(from, From, ll, long long)  \
  PK_SIM_TO_INTEGER(from, From, ull, unsigned long long)
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
PK_SIM_INLINE float __fmaf_ieee_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
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
