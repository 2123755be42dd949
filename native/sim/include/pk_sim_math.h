// pk_sim_math.h: CUDA's mathematical functions over the C library's, with the overloads for float and for integers.
#pragma once
#pragma GCC system_header

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")

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

// Declared in C, so that the plain name is the C library's; the float overload beside it.
#define PK_SIM_MATH1(name)                                             \
  extern "C" double name(double) noexcept;                             \
  extern "C" float name##f(float) noexcept;                            \
  PK_SIM_INLINE float name(float x) { return __builtin_##name##f(x); } \
  template <class T>                                                   \
  PK_SIM_INLINE typename pk_sim_integer<T>::type name(T x) {           \
    return __builtin_##name((double)x);                                \
  }
#define PK_SIM_MATH2(name)                                                         \
  extern "C" double name(double, double) noexcept;                                 \
  extern "C" float name##f(float, float) noexcept;                                 \
  PK_SIM_INLINE float name(float x, float y) { return __builtin_##name##f(x, y); } \
  template <class A, class B>                                                      \
  PK_SIM_INLINE typename pk_sim_mixed<A, B>::type name(A x, B y) {                 \
    return __builtin_##name((double)x, (double)y);                                 \
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

extern "C" {
double pow(double, double) noexcept;
float powf(float, float) noexcept;
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double frexp(double, int *) noexcept;
float frexpf(float, int *) noexcept;
double modf(double, double *) noexcept;
float modff(float, float *) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long lround(double) noexcept;
long lroundf(float) noexcept;
long long llround(double) noexcept;
long long llroundf(float) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
void *memcpy(void *, const void *, size_t) noexcept;
void *memset(void *, int, size_t) noexcept;
void *memmove(void *, const void *, size_t) noexcept;
}
PK_SIM_INLINE float pow(float x, float y) { return __builtin_powf(x, y); }
PK_SIM_INLINE float pow(float x, int y) { return __builtin_powf(x, (float)y); }
PK_SIM_INLINE double pow(double x, int y) { return __builtin_pow(x, (double)y); }
template <class A, class B>
PK_SIM_INLINE typename pk_sim_mixed<A, B>::type pow(A x, B y) {
  return __builtin_pow((double)x, (double)y);
}
PK_SIM_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
PK_SIM_INLINE float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
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

// ---- functions the C library does not have; both precisions computed in double
#define PK_SIM_MATH1_OURS(name, ...)                          \
  PK_SIM_INLINE double name(double x) { return __VA_ARGS__; } \
  PK_SIM_INLINE float name##f(float single) {                 \
    const double x = single;                                  \
    return (float)(__VA_ARGS__);                              \
  }                                                           \
  PK_SIM_INLINE float name(float x) { return name##f(x); }
PK_SIM_MATH1_OURS(rsqrt, 1.0 / __builtin_sqrt(x))
PK_SIM_MATH1_OURS(rcbrt, 1.0 / __builtin_cbrt(x))
PK_SIM_MATH1_OURS(exp10, __builtin_pow(10.0, x))
// The argument is reduced before it is multiplied: sin(pi n) is exactly 0.
PK_SIM_INLINE double pk_sim_half_turns(double x) { return x - 2.0 * __builtin_rint(0.5 * x); }
PK_SIM_INLINE double pk_sim_sinpi(double x) {
  const double r = pk_sim_half_turns(x);
  return __builtin_rint(r) == r ? 0.0 * x : __builtin_sin(3.14159265358979323846 * r);
}
PK_SIM_INLINE double pk_sim_cospi(double x) {
  const double r = __builtin_fabs(pk_sim_half_turns(x));
  return r == 0.5 ? 0.0 : __builtin_cos(3.14159265358979323846 * r);
}
PK_SIM_MATH1_OURS(sinpi, pk_sim_sinpi(x))
PK_SIM_MATH1_OURS(cospi, pk_sim_cospi(x))
PK_SIM_MATH1_OURS(normcdf, 0.5 * __builtin_erfc(-x * 0.70710678118654752440))
// Winitzki's approximation, then Newton's method on the complement, which keeps its digits near 1.
PK_SIM_INLINE double pk_sim_erfinv(double signed_y) {
  const double y = __builtin_fabs(signed_y);
  if (!(y < 1.0)) return y == 1.0 ? __builtin_copysign(__builtin_inf(), signed_y) : __builtin_nan("");
  const double w = __builtin_log1p(-y * y), t = 4.330746750799873 + 0.5 * w;
  double x = __builtin_sqrt(__builtin_sqrt(t * t - w * 6.802721088435374) - t);
  for (int step = 0; step < 3; ++step)
    x += (__builtin_erfc(x) - (1.0 - y)) / (1.12837916709551257390 * __builtin_exp(-x * x));
  return __builtin_copysign(x, signed_y);
}
PK_SIM_MATH1_OURS(erfinv, pk_sim_erfinv(x))
#undef PK_SIM_MATH1_OURS
PK_SIM_INLINE float rhypotf(float x, float y) { return (float)(1.0 / __builtin_hypot((double)x, (double)y)); }
PK_SIM_INLINE double rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
PK_SIM_INLINE float norm3df(float x, float y, float z) {
  return (float)__builtin_sqrt((double)x * x + (double)y * y + (double)z * z);
}
PK_SIM_INLINE double norm3d(double x, double y, double z) { return __builtin_hypot(__builtin_hypot(x, y), z); }
PK_SIM_INLINE void sincosf(float x, float *s, float *c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
PK_SIM_INLINE void sincos(double x, double *s, double *c) { *s = __builtin_sin(x), *c = __builtin_cos(x); }
PK_SIM_INLINE void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
PK_SIM_INLINE void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }

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
PK_SIM_INLINE unsigned umax(unsigned a, unsigned b) { return max(a, b); }
