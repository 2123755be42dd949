// pk_sim_math.h: CUDA's mathematical functions over the C library's, with the overloads for float and for integers.
#pragma once
#pragma GCC system_header

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

// Which overload a call with other argument types gets: integers and mixed types compute in double.
template <class T>
struct pk_sim_integer {};
#define PK_SIM_INTEGER(T)    \
  template <>                \
  struct pk_sim_integer<T> { \
    typedef double type;     \
  };
PK_SIM_INTEGER(bool)
PK_SIM_INTEGER(char)
PK_SIM_INTEGER(signed char)
PK_SIM_INTEGER(unsigned char)
PK_SIM_INTEGER(short)
PK_SIM_INTEGER(unsigned short)
PK_SIM_INTEGER(int)
PK_SIM_INTEGER(unsigned)
PK_SIM_INTEGER(long)
PK_SIM_INTEGER(unsigned long)
PK_SIM_INTEGER(long long)
PK_SIM_INTEGER(unsigned long long)
#undef PK_SIM_INTEGER
template <class T>
struct pk_sim_number : pk_sim_integer<T> {};
template <>
struct pk_sim_number<float> {
  typedef double type;
};
template <>
struct pk_sim_number<double> {
  typedef double type;
};
template <class A, class B, class = typename pk_sim_number<A>::type, class R = typename pk_sim_number<B>::type>
struct pk_sim_mixed {
  typedef R type;
};
template <class A>
struct pk_sim_mixed<A, A, double, double> {};
template <>
struct pk_sim_mixed<int, int, double, double> {
  typedef double type;
};

// In a namespace of its own, as all functions that have plain names: a kernel or a function of the user's may have the
// same one. Not declared in C: their names in the image are the C library's.
namespace pk_sim_library {

#define PK_SIM_MATH1(name)                                                \
  PK_SIM_INLINE double name(double x) { return __builtin_##name(x); }     \
  PK_SIM_INLINE float name##f(float x) { return __builtin_##name##f(x); } \
  PK_SIM_INLINE float name(float x) { return __builtin_##name##f(x); }    \
  template <class T>                                                      \
  PK_SIM_INLINE typename pk_sim_integer<T>::type name(T x) {              \
    return __builtin_##name((double)x);                                   \
  }
#define PK_SIM_MATH2(name)                                                            \
  PK_SIM_INLINE double name(double x, double y) { return __builtin_##name(x, y); }    \
  PK_SIM_INLINE float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  PK_SIM_INLINE float name(float x, float y) { return __builtin_##name##f(x, y); }    \
  template <class A, class B>                                                         \
  PK_SIM_INLINE typename pk_sim_mixed<A, B>::type name(A x, B y) {                    \
    return __builtin_##name((double)x, (double)y);                                    \
  }
PK_SIM_MATH1(sin)
PK_SIM_MATH1(cos)
PK_SIM_MATH1(tan)
PK_SIM_MATH1(asin)
PK_SIM_MATH1(acos)
PK_SIM_MATH1(atan)
PK_SIM_MATH1(sinh)
PK_SIM_MATH1(cosh)
PK_SIM_MATH1(tanh)
PK_SIM_MATH1(asinh)
PK_SIM_MATH1(acosh)
PK_SIM_MATH1(atanh)
PK_SIM_MATH1(exp)
PK_SIM_MATH1(exp2)
PK_SIM_MATH1(expm1)
PK_SIM_MATH1(log)
PK_SIM_MATH1(log2)
PK_SIM_MATH1(log10)
PK_SIM_MATH1(log1p)
PK_SIM_MATH1(logb)
PK_SIM_MATH1(sqrt)
PK_SIM_MATH1(cbrt)
PK_SIM_MATH1(fabs)
PK_SIM_MATH1(floor)
PK_SIM_MATH1(ceil)
PK_SIM_MATH1(trunc)
PK_SIM_MATH1(round)
PK_SIM_MATH1(rint)
PK_SIM_MATH1(nearbyint)
PK_SIM_MATH1(erf)
PK_SIM_MATH1(erfc)
PK_SIM_MATH1(lgamma)
PK_SIM_MATH1(tgamma)
PK_SIM_MATH2(atan2)
PK_SIM_MATH2(fmod)
PK_SIM_MATH2(remainder)
PK_SIM_MATH2(fmax)
PK_SIM_MATH2(fmin)
PK_SIM_MATH2(fdim)
PK_SIM_MATH2(hypot)
PK_SIM_MATH2(copysign)
PK_SIM_MATH2(nextafter)
#undef PK_SIM_MATH1
#undef PK_SIM_MATH2

PK_SIM_INLINE double pow(double x, double y) { return __builtin_pow(x, y); }
PK_SIM_INLINE float powf(float x, float y) { return __builtin_powf(x, y); }
PK_SIM_INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
PK_SIM_INLINE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
PK_SIM_INLINE double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
PK_SIM_INLINE float ldexpf(float x, int n) { return __builtin_ldexpf(x, n); }
PK_SIM_INLINE double scalbn(double x, int n) { return __builtin_scalbn(x, n); }
PK_SIM_INLINE float scalbnf(float x, int n) { return __builtin_scalbnf(x, n); }
PK_SIM_INLINE double frexp(double x, int *n) { return __builtin_frexp(x, n); }
PK_SIM_INLINE float frexpf(float x, int *n) { return __builtin_frexpf(x, n); }
PK_SIM_INLINE double modf(double x, double *n) { return __builtin_modf(x, n); }
PK_SIM_INLINE float modff(float x, float *n) { return __builtin_modff(x, n); }
PK_SIM_INLINE double scalbln(double x, long n) { return __builtin_scalbln(x, n); }
PK_SIM_INLINE float scalblnf(float x, long n) { return __builtin_scalblnf(x, n); }
PK_SIM_INLINE double remquo(double x, double y, int *n) { return __builtin_remquo(x, y, n); }
PK_SIM_INLINE float remquof(float x, float y, int *n) { return __builtin_remquof(x, y, n); }
PK_SIM_INLINE int ilogb(double x) { return __builtin_ilogb(x); }
PK_SIM_INLINE int ilogbf(float x) { return __builtin_ilogbf(x); }
PK_SIM_INLINE long lround(double x) { return __builtin_lround(x); }
PK_SIM_INLINE long lroundf(float x) { return __builtin_lroundf(x); }
PK_SIM_INLINE long long llround(double x) { return __builtin_llround(x); }
PK_SIM_INLINE long long llroundf(float x) { return __builtin_llroundf(x); }
PK_SIM_INLINE long lrint(double x) { return __builtin_lrint(x); }
PK_SIM_INLINE long lrintf(float x) { return __builtin_lrintf(x); }
PK_SIM_INLINE long long llrint(double x) { return __builtin_llrint(x); }
PK_SIM_INLINE long long llrintf(float x) { return __builtin_llrintf(x); }
PK_SIM_INLINE int abs(int x) { return __builtin_abs(x); }
PK_SIM_INLINE long labs(long x) { return __builtin_labs(x); }
PK_SIM_INLINE long long llabs(long long x) { return __builtin_llabs(x); }
#ifdef PK_SIM_CHECK
#define PK_SIM_MEMORY(name) __tsan_##name
extern "C" void *__tsan_memcpy(void *, const void *, size_t);
extern "C" void *__tsan_memset(void *, int, size_t);
extern "C" void *__tsan_memmove(void *, const void *, size_t);
#else
#define PK_SIM_MEMORY(name) __builtin_##name
#endif
PK_SIM_INLINE void *memcpy(void *to, const void *from, size_t n) { return PK_SIM_MEMORY(memcpy)(to, from, n); }
PK_SIM_INLINE void *memset(void *to, int value, size_t n) { return PK_SIM_MEMORY(memset)(to, value, n); }
PK_SIM_INLINE void *memmove(void *to, const void *from, size_t n) { return PK_SIM_MEMORY(memmove)(to, from, n); }
#undef PK_SIM_MEMORY
PK_SIM_INLINE float pow(float x, float y) { return __builtin_powf(x, y); }
PK_SIM_INLINE float pow(float x, int y) { return __builtin_powf(x, (float)y); }
PK_SIM_INLINE double pow(double x, int y) { return __builtin_pow(x, (double)y); }
template <class A, class B>
PK_SIM_INLINE typename pk_sim_mixed<A, B>::type pow(A x, B y) {
  return __builtin_pow((double)x, (double)y);
}
PK_SIM_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
PK_SIM_INLINE float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
PK_SIM_INLINE float scalbn(float x, int n) { return __builtin_scalbnf(x, n); }
PK_SIM_INLINE float scalbln(float x, long n) { return __builtin_scalblnf(x, n); }
PK_SIM_INLINE float remquo(float x, float y, int *n) { return __builtin_remquof(x, y, n); }
PK_SIM_INLINE int ilogb(float x) { return __builtin_ilogbf(x); }
PK_SIM_INLINE long lround(float x) { return __builtin_lroundf(x); }
PK_SIM_INLINE long lrint(float x) { return __builtin_lrintf(x); }
PK_SIM_INLINE long long llround(float x) { return __builtin_llroundf(x); }
PK_SIM_INLINE long long llrint(float x) { return __builtin_llrintf(x); }
PK_SIM_INLINE float frexp(float x, int *n) { return __builtin_frexpf(x, n); }
PK_SIM_INLINE float modf(float x, float *whole) { return __builtin_modff(x, whole); }
PK_SIM_INLINE float abs(float x) { return __builtin_fabsf(x); }
PK_SIM_INLINE double abs(double x) { return __builtin_fabs(x); }
PK_SIM_INLINE long abs(long x) { return x < 0 ? -x : x; }
PK_SIM_INLINE long long abs(long long x) { return x < 0 ? -x : x; }

#define PK_SIM_TEST(name, builtin)                        \
  PK_SIM_INLINE bool name(float x) { return builtin(x); } \
  PK_SIM_INLINE bool name(double x) { return builtin(x); }
PK_SIM_TEST(isnan, __builtin_isnan)
PK_SIM_TEST(isinf, __builtin_isinf)
PK_SIM_TEST(isfinite, __builtin_isfinite)
PK_SIM_TEST(signbit, __builtin_signbit)
#undef PK_SIM_TEST
PK_SIM_INLINE int __isnan(double x) { return __builtin_isnan(x); }
PK_SIM_INLINE int __isinf(double x) { return __builtin_isinf(x); }
PK_SIM_INLINE int __finite(double x) { return __builtin_isfinite(x); }
PK_SIM_INLINE int __signbit(double x) { return __builtin_signbit(x); }
PK_SIM_INLINE float nanf(const char *) { return __builtin_nanf(""); }
PK_SIM_INLINE double nan(const char *) { return __builtin_nan(""); }

PK_SIM_INLINE void sincosf(float x, float *s, float *c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
PK_SIM_INLINE void sincos(double x, double *s, double *c) { *s = __builtin_sin(x), *c = __builtin_cos(x); }

#define PK_SIM_MINMAX(T)                                  \
  PK_SIM_INLINE T min(T a, T b) { return b < a ? b : a; } \
  PK_SIM_INLINE T max(T a, T b) { return a < b ? b : a; }
PK_SIM_MINMAX(int)
PK_SIM_MINMAX(unsigned)
PK_SIM_MINMAX(long)
PK_SIM_MINMAX(unsigned long)
PK_SIM_MINMAX(long long)
PK_SIM_MINMAX(unsigned long long)
#undef PK_SIM_MINMAX
#define PK_SIM_MINMAX_UNSIGNED(A, B, U)                     \
  PK_SIM_INLINE U min(A a, B b) { return min((U)a, (U)b); } \
  PK_SIM_INLINE U max(A a, B b) { return max((U)a, (U)b); }
PK_SIM_MINMAX_UNSIGNED(unsigned, int, unsigned)
PK_SIM_MINMAX_UNSIGNED(int, unsigned, unsigned)
PK_SIM_MINMAX_UNSIGNED(unsigned long, long, unsigned long)
PK_SIM_MINMAX_UNSIGNED(long, unsigned long, unsigned long)
PK_SIM_MINMAX_UNSIGNED(unsigned long long, long long, unsigned long long)
PK_SIM_MINMAX_UNSIGNED(long long, unsigned long long, unsigned long long)
#undef PK_SIM_MINMAX_UNSIGNED
PK_SIM_INLINE float min(float a, float b) { return __builtin_fminf(a, b); }
PK_SIM_INLINE float max(float a, float b) { return __builtin_fmaxf(a, b); }
PK_SIM_INLINE double min(double a, double b) { return __builtin_fmin(a, b); }
PK_SIM_INLINE double max(double a, double b) { return __builtin_fmax(a, b); }
PK_SIM_INLINE double min(float a, double b) { return __builtin_fmin(a, b); }
PK_SIM_INLINE double max(float a, double b) { return __builtin_fmax(a, b); }
PK_SIM_INLINE double min(double a, float b) { return __builtin_fmin(a, b); }
PK_SIM_INLINE double max(double a, float b) { return __builtin_fmax(a, b); }
PK_SIM_INLINE unsigned umin(unsigned a, unsigned b) { return min(a, b); }
PK_SIM_INLINE long long llmin(long long a, long long b) { return min(a, b); }
PK_SIM_INLINE long long llmax(long long a, long long b) { return max(a, b); }
PK_SIM_INLINE unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
PK_SIM_INLINE unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
PK_SIM_INLINE unsigned umax(unsigned a, unsigned b) { return max(a, b); }

}  // namespace pk_sim_library
using namespace pk_sim_library;
