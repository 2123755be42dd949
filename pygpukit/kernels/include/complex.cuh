// complex.cuh: functions of complex numbers. Branch cuts and signs of zero as C's Annex G, which NumPy follows.
#pragma once
#include "math.cuh"

namespace pk {

template <class R>
__device__ __forceinline__ complex_t<R> times_i(complex_t<R> z) {
  return {-z.im, z.re};
}
template <class R>
__device__ __forceinline__ complex_t<R> times_minus_i(complex_t<R> z) {
  return {z.im, -z.re};
}
template <class R>
__device__ __forceinline__ complex_t<R> scale(complex_t<R> z, double factor) {
  return {z.re * R(factor), z.im * R(factor)};
}

template <class R>
__device__ __forceinline__ R magnitude(complex_t<R> z) {
  return ::hypot(z.re, z.im);
}

template <class R>
__device__ complex_t<R> exp(complex_t<R> z) {
  const R size = ::exp(z.re);
  if (z.im == 0) return {size, z.im};
  if (!is_finite(z.im)) {
    const R nan = z.im - z.im;
    return is_infinite(z.re) ? complex_t<R>{size, z.re < 0 ? R(0) : nan} : complex_t<R>{nan, nan};
  }
  const R re = ::cos(z.im), im = ::sin(z.im);
  if (is_infinite(size) && is_finite(z.re)) {  // the parts may still be finite
    const R root = ::exp(z.re * R(0.5));
    return {root * re * root, root * im * root};
  }
  return {size * re, size * im};
}

template <class R>
__device__ complex_t<R> log(complex_t<R> z) {
  const R a = ::fabs(z.re), b = ::fabs(z.im);
  const R large = a > b ? a : b, small = a > b ? b : a;
  const R angle = ::atan2(z.im, z.re);
  // Near the unit circle the logarithm of a rounded magnitude has no digits left.
  if (large > R(0.5) && large < R(2)) {
    return {R(0.5) * ::log1p((large - R(1)) * (large + R(1)) + small * small), angle};
  }
  return {::log(magnitude(z)), angle};
}

template <class R>
__device__ complex_t<R> log1p(complex_t<R> z) {
  if (::fabs(z.re) < R(0.5) && ::fabs(z.im) < R(0.5)) {
    return {R(0.5) * ::log1p(z.re * (R(2) + z.re) + z.im * z.im), ::atan2(z.im, R(1) + z.re)};
  }
  return log(complex_t<R>{R(1) + z.re, z.im});
}
template <class R>
__device__ complex_t<R> log2(complex_t<R> z) {
  return scale(log(z), 1.44269504088896340736);
}
template <class R>
__device__ complex_t<R> log10(complex_t<R> z) {
  return scale(log(z), 0.43429448190325182765);
}
template <class R>
__device__ complex_t<R> exp2(complex_t<R> z) {
  return exp(scale(z, 0.69314718055994530942));
}
template <class R>
__device__ complex_t<R> expm1(complex_t<R> z) {
  const R half = ::sin(z.im * R(0.5));
  return {::expm1(z.re) * ::cos(z.im) - R(2) * half * half, ::exp(z.re) * ::sin(z.im)};
}

template <class R>
__device__ complex_t<R> sqrt(complex_t<R> z) {
  if (z.re == 0 && z.im == 0) return {R(0), z.im};
  if (is_infinite(z.im)) return {::fabs(z.im), z.im};
  if (is_infinite(z.re)) {
    const R rest = z.im - z.im;  // 0, or nan
    return z.re > 0 ? complex_t<R>{z.re, ::copysign(rest, z.im)} : complex_t<R>{rest, ::copysign(z.re, z.im)};
  }
  // A quarter of the number, so that the sum below cannot overflow; twice its root.
  const R re = z.re * R(0.25), im = z.im * R(0.25);
  const bool tiny = ::fabs(z.re) < R(1e-30) && ::fabs(z.im) < R(1e-30);
  const R grow = tiny ? R(4294967296.0) * R(4294967296.0) : R(1), shrink = tiny ? R(1) / R(4294967296.0) : R(1);
  const R root = ::sqrt(R(0.5) * (::fabs(re * grow) + ::hypot(re * grow, im * grow)));
  const R other = ::fabs(im * grow) / (R(2) * root);
  const R a = R(2) * root * shrink, b = R(2) * other * shrink;
  return z.re >= 0 ? complex_t<R>{a, ::copysign(b, z.im)} : complex_t<R>{b, ::copysign(a, z.im)};
}
template <class R>
__device__ complex_t<R> rsqrt(complex_t<R> z) {
  return divide(complex_t<R>{R(1), R(0)}, sqrt(z));
}

template <class R>
__device__ complex_t<R> sinh(complex_t<R> z) {
  if (z.im == 0) return {::sinh(z.re), z.im};
  if (z.re == 0) return {::copysign(R(0), z.re * ::cos(z.im)), ::sin(z.im)};
  return {::sinh(z.re) * ::cos(z.im), ::cosh(z.re) * ::sin(z.im)};
}
template <class R>
__device__ complex_t<R> cosh(complex_t<R> z) {
  if (z.im == 0) return {::cosh(z.re), z.re == 0 ? z.re * z.im : ::copysign(R(0), z.re) * z.im};
  if (z.re == 0) return {::cos(z.im), z.re * ::sin(z.im)};
  return {::cosh(z.re) * ::cos(z.im), ::sinh(z.re) * ::sin(z.im)};
}
// Kahan, "Branch Cuts for Complex Elementary Functions" (1987), as the inverse functions below.
template <class R>
__device__ complex_t<R> tanh(complex_t<R> z) {
  if (::fabs(z.re) > R(sizeof(R) == 4 ? 11 : 22)) {
    const R wave = is_finite(z.im) ? ::sin(z.im) * ::cos(z.im) : R(0);
    return {::copysign(R(1), z.re), R(4) * wave * ::exp(R(-2) * ::fabs(z.re))};
  }
  const R t = ::tan(z.im), s = ::sinh(z.re);
  const R beta = R(1) + t * t, rho = ::sqrt(R(1) + s * s);
  if (is_infinite(beta)) return {rho / s, R(1) / t};
  const R below = R(1) + beta * s * s;
  return {beta * rho * s / below, t / below};
}
template <class R>
__device__ complex_t<R> sin(complex_t<R> z) {
  return times_minus_i(sinh(times_i(z)));
}
template <class R>
__device__ complex_t<R> cos(complex_t<R> z) {
  return cosh(times_i(z));
}
template <class R>
__device__ complex_t<R> tan(complex_t<R> z) {
  return times_minus_i(tanh(times_i(z)));
}

template <class R>
__device__ complex_t<R> asin(complex_t<R> z) {
  const complex_t<R> a = sqrt(complex_t<R>{R(1) - z.re, -z.im}), b = sqrt(complex_t<R>{R(1) + z.re, z.im});
  return {::atan2(z.re, a.re * b.re - a.im * b.im), ::asinh(a.re * b.im - a.im * b.re)};
}
template <class R>
__device__ complex_t<R> acos(complex_t<R> z) {
  const complex_t<R> a = sqrt(complex_t<R>{R(1) - z.re, -z.im}), b = sqrt(complex_t<R>{R(1) + z.re, z.im});
  return {R(2) * ::atan2(a.re, b.re), ::asinh(b.re * a.im - b.im * a.re)};
}
template <class R>
__device__ complex_t<R> acosh(complex_t<R> z) {
  const complex_t<R> a = sqrt(complex_t<R>{z.re - R(1), z.im}), b = sqrt(complex_t<R>{z.re + R(1), z.im});
  return {::asinh(a.re * b.re + a.im * b.im), R(2) * ::atan2(a.im, b.re)};
}
template <class R>
__device__ complex_t<R> asinh(complex_t<R> z) {
  return times_minus_i(asin(times_i(z)));
}
template <class R>
__device__ complex_t<R> atanh(complex_t<R> z) {
  const R x = ::fabs(z.re), y = z.im;
  const R larger = x > ::fabs(y) ? x : ::fabs(y);
  if (larger > R(1e9)) {  // 1 / z to the last digit, half a turn beside it
    const R u = x / larger, v = y / larger;
    return {::copysign(is_infinite(larger) ? R(0) : u / (u * u + v * v) / larger, z.re),
            ::copysign(R(1.57079632679489661923), y)};
  }
  const R away = R(1) - x;
  return {::copysign(R(0.25) * ::log1p(R(4) * x / (away * away + y * y)), z.re),
          R(0.5) * ::atan2(R(2) * y, away * (R(1) + x) - y * y)};
}
template <class R>
__device__ complex_t<R> atan(complex_t<R> z) {
  return times_minus_i(atanh(times_i(z)));
}

// Small whole exponents by squaring, others by the logarithm; in double, so that large exponents keep float's digits.
template <class R>
__device__ complex_t<R> power(complex_t<R> base, complex_t<R> exponent) {
  complex_t<double> a = {base.re, base.im}, b = {exponent.re, exponent.im};
  if (b.re == 0 && b.im == 0) return {R(1), R(0)};
  if (a.re == 0 && a.im == 0) {
    const double nan = b.re > 0 && b.im == 0 ? 0.0 : __longlong_as_double(0x7ff8000000000000LL);
    return {R(nan), R(nan)};
  }
  complex_t<double> result = {1.0, 0.0};
  if (b.im == 0 && b.re == ::trunc(b.re) && ::fabs(b.re) < 100) {
    for (int n = static_cast<int>(::fabs(b.re)); n; n >>= 1) {
      if (n & 1) result = exact::multiply(result, a);
      a = exact::multiply(a, a);
    }
    if (b.re < 0) result = divide(complex_t<double>{1.0, 0.0}, result);
  } else {
    result = exp(exact::multiply(b, log(a)));
  }
  return {static_cast<R>(result.re), static_cast<R>(result.im)};
}

}  // namespace pk
