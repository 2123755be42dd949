// math.cuh: real functions of the compute types, exactly rounded arithmetic, and short forms for 16-bit floats.
#pragma once
#include "numeric.cuh"

namespace pk {

// ---- CUDA's functions under the names that complex.cuh adds overloads to ----

#define PK_REAL(name)                                                       \
  __device__ __forceinline__ float name(float x) { return ::name(x); } \
  __device__ __forceinline__ double name(double x) { return ::name(x); }
PK_REAL(acos)
PK_REAL(acosh)
PK_REAL(asin)
PK_REAL(asinh)
PK_REAL(atan)
PK_REAL(atanh)
PK_REAL(ceil)
PK_REAL(cos)
PK_REAL(cosh)
PK_REAL(erf)
PK_REAL(exp)
PK_REAL(exp2)
PK_REAL(expm1)
PK_REAL(floor)
PK_REAL(log)
PK_REAL(log10)
PK_REAL(log1p)
PK_REAL(log2)
PK_REAL(rint)
PK_REAL(rsqrt)
PK_REAL(sin)
PK_REAL(sinh)
PK_REAL(sqrt)
PK_REAL(tan)
PK_REAL(tanh)
PK_REAL(trunc)
#undef PK_REAL

template <class R>
__device__ __forceinline__ bool is_nan(R x) {
  return x != x;
}
template <class R>
__device__ __forceinline__ bool is_finite(R x) {
  return x - x == 0;
}
template <class R>
__device__ __forceinline__ bool is_infinite(R x) {
  return x == x && !is_finite(x);
}
__device__ __forceinline__ bool sign_bit(float x) { return __float_as_uint(x) >> 31; }
__device__ __forceinline__ bool sign_bit(double x) { return __double_as_longlong(x) < 0; }

// ---- arithmetic that no compiler merges into a fused multiply-add, so that neighbours do not change a result ----

namespace exact {
template <class T>
__device__ __forceinline__ T add(T a, T b) {
  return pk::add(a, b);
}
template <class T>
__device__ __forceinline__ T subtract(T a, T b) {
  return pk::subtract(a, b);
}
template <class T>
__device__ __forceinline__ T multiply(T a, T b) {
  return pk::multiply(a, b);
}
__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ float subtract(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ double subtract(double a, double b) { return __dsub_rn(a, b); }
__device__ __forceinline__ float multiply(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double multiply(double a, double b) { return __dmul_rn(a, b); }
template <class R>
__device__ __forceinline__ complex_t<R> add(complex_t<R> a, complex_t<R> b) {
  return {add(a.re, b.re), add(a.im, b.im)};
}
template <class R>
__device__ __forceinline__ complex_t<R> subtract(complex_t<R> a, complex_t<R> b) {
  return {subtract(a.re, b.re), subtract(a.im, b.im)};
}
template <class R>
__device__ __forceinline__ complex_t<R> multiply(complex_t<R> a, complex_t<R> b) {
  return {subtract(multiply(a.re, b.re), multiply(a.im, b.im)), add(multiply(a.re, b.im), multiply(a.im, b.re))};
}
}  // namespace exact

// ---- for 16-bit floats: one or two instructions whose error vanishes in the rounding of the result ----

namespace brief {
__device__ __forceinline__ float power_of_two(float x) {
  float result;
  asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
__device__ __forceinline__ float reciprocal(float x) {
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
// The same for results that may be 0 where they are below the least normal float.
__device__ __forceinline__ float normal_power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
__device__ __forceinline__ float normal_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
constexpr float kLog2OfE = 1.44269504088896341f;
__device__ __forceinline__ float exp(float x) { return power_of_two(x * kLog2OfE); }
__device__ __forceinline__ float sigmoid(float x) { return reciprocal(1.0f + normal_power_of_two(-kLog2OfE * x)); }
}  // namespace brief

// True for element types that are computed in float and rounded to 16 bits.
template <class T>
constexpr bool is_small_float = false;
template <>
constexpr bool is_small_float<half_t> = true;
template <>
constexpr bool is_small_float<bfloat16_t> = true;

// ---- activations, in the compute type R of elements S ----

template <class S, class R>
__device__ __forceinline__ R sigmoid(R x) {
  if constexpr (is_small_float<S>) return brief::sigmoid(x);
  return R(1) / (R(1) + ::exp(-x));
}

template <class S, class R>
__device__ __forceinline__ R silu(R x) {
  if constexpr (is_small_float<S>) return x * brief::sigmoid(x);
  return x / (R(1) + ::exp(-x));
}

// x times the normal distribution's probability below x. In float: max(x, 0) - |x| Phi(-|x|), where Phi(-y) is
// exp(-y^2/2) t p(t), t = 1 / (1 + c y), a form of Hastings', with p of least relative error over 0 <= y <= 14.5:
// 3.2e-8 for float elements, 3.3e-5 for 16-bit ones. The small tail of negative x keeps its digits.
template <class S>
__device__ __forceinline__ float gelu(float x) {
  const float y = fabsf(x);
  float p, c;
  if constexpr (is_small_float<S>) {
    c = brief::normal_reciprocal(fmaf(0.375f, y, 1.0f));
    p = fmaf(c, -9.0317695e-2f, 1.9955833e-1f);
    p = fmaf(c, p, 8.4123256e-2f);
    p = fmaf(c, p, 1.5755839e-1f);
    p = fmaf(c, p, 1.4907964e-1f);
  } else {
    c = brief::normal_reciprocal(fmaf(0.35f, y, 1.0f));
    p = fmaf(c, -2.9157864320e-2f, 1.4403082246e-1f);
    p = fmaf(c, p, -2.5583881820e-1f);
    p = fmaf(c, p, 1.5931950017e-1f);
    p = fmaf(c, p, -2.3212230596e-2f);
    p = fmaf(c, p, 1.0555245502e-1f);
    p = fmaf(c, p, 1.1982129845e-1f);
    p = fmaf(c, p, 1.3986351412e-1f);
    p = fmaf(c, p, 1.3962130691e-1f);
  }
  const float bell = brief::normal_power_of_two(y * y * (-0.5f * brief::kLog2OfE));
  const float tail = y * (bell * (c * p));
  if (y > 14.5f) return x > 0.0f ? x : -0.0f;  // the tail is below every float
  return x > 0.0f ? x - tail : -tail;
}
template <class S>
__device__ __forceinline__ double gelu(double x) {
  if (x < -40.0) return -0.0;
  return 0.5 * x * ::erfc(-0.70710678118654752440 * x);
}

// The form with tanh: x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)).
template <class S, class R>
__device__ __forceinline__ R gelu_tanh(R x) {
  const R twice = R(1.59576912160573071176) * x * (R(1) + R(0.044715) * x * x);
  if constexpr (is_small_float<S>) return x * brief::sigmoid(twice);
  return x / (R(1) + ::exp(-twice));
}

// ---- functions of two arguments ----

// b / a rounded down, and what is left, with the divisor's sign: NumPy's, to the bit. Exact but for one rounding.
template <class R>
__device__ __forceinline__ R remainder(R a, R b) {
  const R rest = ::fmod(a, b);
  if (b == 0 || rest != rest) return rest;
  if (rest == 0) return ::copysign(R(0), b);
  return (b < 0) != (rest < 0) ? exact::add(rest, b) : rest;
}
template <class R>
__device__ __forceinline__ R floor_divide(R a, R b) {
  if (b == 0) return a / b;
  const R rest = ::fmod(a, b);
  R quotient = exact::subtract(a, rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient = exact::subtract(quotient, R(1));
  if (quotient == 0) return ::copysign(R(0), a / b);
  const R down = ::floor(quotient);
  return exact::subtract(quotient, down) > R(0.5) ? exact::add(down, R(1)) : down;
}

// Integers: division by zero gives 0, and the least integer by -1 wraps.
template <class T>
__device__ __forceinline__ T floor_divide_integers(T a, T b) {
  if (b == 0) return 0;
  if constexpr (T(-1) < T(0)) {
    if (b == T(-1)) return negate(a);
    const T quotient = static_cast<T>(a / b);
    return static_cast<T>(quotient - (quotient * b != a && (a < 0) != (b < 0)));
  } else {
    return static_cast<T>(a / b);
  }
}
template <class T>
__device__ __forceinline__ T remainder_integers(T a, T b) {
  if (b == 0) return 0;
  if constexpr (T(-1) < T(0)) {
    if (b == T(-1)) return 0;
    const T rest = static_cast<T>(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  } else {
    return static_cast<T>(a % b);
  }
}

// a to the power b by squaring, wrapping; a negative exponent gives the exact result rounded towards zero.
template <class T>
__device__ __forceinline__ T power_integers(T a, T b) {
  if constexpr (T(-1) < T(0)) {
    if (b < 0) return a == 1 ? T(1) : a == T(-1) ? T(b & 1 ? -1 : 1) : T(0);
  }
  T result = 1;
  for (unsigned long long n = static_cast<unsigned long long>(b); n; n >>= 1) {
    if (n & 1) result = multiply(result, a);
    a = multiply(a, a);
  }
  return result;
}

// log(exp(a) + exp(b)) without overflow.
template <class R>
__device__ __forceinline__ R log_add_exp(R a, R b) {
  if (a == b) return exact::add(a, R(0.693147180559945309417));  // also equal infinities
  const R apart = exact::subtract(a, b);
  if (apart > 0) return exact::add(a, ::log1p(::exp(-apart)));
  if (apart <= 0) return exact::add(b, ::log1p(::exp(apart)));
  return apart;  // nan
}

// The next representable element after a towards b; of 16-bit floats by their bits, which count up from zero.
__device__ __forceinline__ float next_after(float a, float b) { return ::nextafter(a, b); }
__device__ __forceinline__ double next_after(double a, double b) { return ::nextafter(a, b); }
template <class T>
__device__ __forceinline__ T next_small(T a, T b) {
  const float from = widen(a), to = widen(b);
  if (from != from) return a;
  if (to != to) return b;
  if (from == to) return b;
  if (from == 0) return {static_cast<unsigned short>((b.bits & 0x8000u) | 1u)};
  return {static_cast<unsigned short>((from < to) == (from > 0) ? a.bits + 1 : a.bits - 1)};
}
__device__ __forceinline__ half_t next_after(half_t a, half_t b) { return next_small(a, b); }
__device__ __forceinline__ bfloat16_t next_after(bfloat16_t a, bfloat16_t b) { return next_small(a, b); }

}  // namespace pk
