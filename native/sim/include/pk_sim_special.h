// pk_sim_special.h: mathematical functions that CUDA has and the C library has not, or under names left to the user.
#pragma once
#pragma GCC system_header

namespace pk_sim_library {

// Both precisions are computed in double.
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
// 1 - erfinv's argument, where that would lose all digits: Newton's method on erfc itself.
PK_SIM_INLINE double pk_sim_erfcinv(double whole) {
  if (!(whole > 0.0 && whole < 2.0))
    return whole == 0.0 ? __builtin_inf() : whole == 2.0 ? -__builtin_inf() : __builtin_nan("");
  const double y = whole > 1.0 ? 2.0 - whole : whole, sign = whole > 1.0 ? -1.0 : 1.0;
  if (y > 0.05) return sign * pk_sim_erfinv(1.0 - y);
  double x = __builtin_sqrt(-__builtin_log(y * 1.7724538509055160 * __builtin_sqrt(-__builtin_log(y))));
  for (int step = 0; step < 5; ++step)
    x += (__builtin_erfc(x) / y - 1.0) * y * 0.88622692545275801 * __builtin_exp(x * x);
  return sign * x;
}
PK_SIM_MATH1_OURS(erfcinv, pk_sim_erfcinv(x))
PK_SIM_MATH1_OURS(normcdfinv, -1.4142135623730950 * pk_sim_erfcinv(2.0 * x))
PK_SIM_INLINE double pk_sim_erfcx(double x) {
  if (x < 25.0) return __builtin_exp(x * x) * __builtin_erfc(x);
  const double z = 1.0 / (x * x);  // the first terms of the asymptotic series
  return 0.56418958354775629 / x * (1.0 - z * (0.5 - z * (0.75 - z * (1.875 - z * 6.5625))));
}
PK_SIM_MATH1_OURS(erfcx, pk_sim_erfcx(x))
// The modified Bessel functions' power series: all terms have one sign.
PK_SIM_INLINE double pk_sim_bessel_i(int order, double x) {
  const double quarter = 0.25 * x * x;
  double term = order ? 0.5 * x : 1.0, sum = term;
  for (double k = 1.0; __builtin_fabs(term) > 1e-17 * __builtin_fabs(sum); ++k) {
    term *= quarter / (k * (k + order));
    sum += term;
    if (__builtin_isinf(sum)) break;
  }
  return sum;
}
PK_SIM_MATH1_OURS(cyl_bessel_i0, pk_sim_bessel_i(0, x))
PK_SIM_MATH1_OURS(cyl_bessel_i1, pk_sim_bessel_i(1, x))
#undef PK_SIM_MATH1_OURS

PK_SIM_INLINE float rhypotf(float x, float y) { return (float)(1.0 / __builtin_hypot((double)x, (double)y)); }
PK_SIM_INLINE double rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
PK_SIM_INLINE float norm3df(float x, float y, float z) {
  return (float)__builtin_sqrt((double)x * x + (double)y * y + (double)z * z);
}
PK_SIM_INLINE double norm3d(double x, double y, double z) { return __builtin_hypot(__builtin_hypot(x, y), z); }
PK_SIM_INLINE float norm4df(float a, float b, float c, float d) {
  return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d);
}
PK_SIM_INLINE double norm4d(double a, double b, double c, double d) { return __builtin_hypot(norm3d(a, b, c), d); }
PK_SIM_INLINE float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
PK_SIM_INLINE double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
PK_SIM_INLINE float rnorm4df(float a, float b, float c, float d) { return 1.0f / norm4df(a, b, c, d); }
PK_SIM_INLINE double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
PK_SIM_INLINE double norm(int n, const double *values) {
  double length = 0.0;
  for (int i = 0; i < n; ++i) length = __builtin_hypot(length, values[i]);
  return length;
}
PK_SIM_INLINE float normf(int n, const float *values) {
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += (double)values[i] * values[i];
  return (float)__builtin_sqrt(sum);
}
PK_SIM_INLINE double rnorm(int n, const double *values) { return 1.0 / norm(n, values); }
PK_SIM_INLINE float rnormf(int n, const float *values) { return 1.0f / normf(n, values); }
PK_SIM_INLINE void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
PK_SIM_INLINE void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }

}  // namespace pk_sim_library

// Bessel functions by the C library. In a namespace of their own: see pk_sim_end.h.
namespace pk_sim_bessel {
#define PK_SIM_BESSEL(name)                                                        \
  PK_SIM_INLINE double name(double x) { return __builtin_##name(x); }              \
  PK_SIM_INLINE double name(int x) { return __builtin_##name((double)x); }         \
  PK_SIM_INLINE float name(float x) { return (float)__builtin_##name((double)x); } \
  PK_SIM_INLINE float name##f(float x) { return (float)__builtin_##name((double)x); }
PK_SIM_BESSEL(j0)
PK_SIM_BESSEL(j1)
PK_SIM_BESSEL(y0)
PK_SIM_BESSEL(y1)
#undef PK_SIM_BESSEL
PK_SIM_INLINE double jn(int n, double x) { return __builtin_jn(n, x); }
PK_SIM_INLINE double yn(int n, double x) { return __builtin_yn(n, x); }
PK_SIM_INLINE float jnf(int n, float x) { return (float)__builtin_jn(n, (double)x); }
PK_SIM_INLINE float ynf(int n, float x) { return (float)__builtin_yn(n, (double)x); }
}  // namespace pk_sim_bessel
