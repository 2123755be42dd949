// operations.cuh: what the element-wise kernels, and fused ones, do with an element: one functor for each operation.
//
// Op::apply<D>(elements of one type) -> element of type D. The compute type of 16-bit floats is float: each operation
// rounds its result once.
#pragma once
#include "complex.cuh"

namespace pk {

// ---- one operand ----

struct Copy {
  template <class D, class S>
  static __device__ __forceinline__ D apply(S value) {
    return convert<D>::from(value);
  }
};

// x: the element in its compute type. S: its own type.
#define PK_UNARY(Name, expression)                         \
  struct Name {                                            \
    template <class D, class S>                            \
    static __device__ __forceinline__ D apply(S element) { \
      const auto x = widen(element);                       \
      return convert<D>::from(expression);                 \
    }                                                      \
  };

template <class T>
__device__ __forceinline__ T absolute(T x) {
  return x < T(0) ? negate(x) : x;
}
__device__ __forceinline__ float absolute(float x) { return ::fabs(x); }
__device__ __forceinline__ double absolute(double x) { return ::fabs(x); }
template <class R>
__device__ __forceinline__ R absolute(complex_t<R> z) {
  return magnitude(z);
}
template <class T>
__device__ __forceinline__ T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
}
template <class R>
__device__ __forceinline__ complex_t<R> sign(complex_t<R> z) {
  const R size = magnitude(z);
  return size == 0 ? complex_t<R>{R(0), R(0)} : complex_t<R>{z.re / size, z.im / size};
}
template <class R>
__device__ __forceinline__ R relu2(R x) {
  return x > 0 || x != x ? x * x : R(0);
}
template <class R>
__device__ __forceinline__ complex_t<R> conjugate(complex_t<R> z) {
  return {z.re, -z.im};
}
template <class R>
__device__ __forceinline__ bool is_nan(complex_t<R> z) {
  return is_nan(z.re) || is_nan(z.im);
}
template <class R>
__device__ __forceinline__ bool is_finite(complex_t<R> z) {
  return is_finite(z.re) && is_finite(z.im);
}
template <class R>
__device__ __forceinline__ bool is_infinite(complex_t<R> z) {
  return is_infinite(z.re) || is_infinite(z.im);
}

PK_UNARY(Absolute, absolute(x))
PK_UNARY(Acos, acos(x))
PK_UNARY(Acosh, acosh(x))
PK_UNARY(Asin, asin(x))
PK_UNARY(Asinh, asinh(x))
PK_UNARY(Atan, atan(x))
PK_UNARY(Atanh, atanh(x))
PK_UNARY(Ceil, ceil(x))
PK_UNARY(Conjugate, conjugate(x))
PK_UNARY(Cos, cos(x))
PK_UNARY(Cosh, cosh(x))
PK_UNARY(Erf, erf(x))
PK_UNARY(Exp2, exp2(x))
PK_UNARY(Expm1, expm1(x))
PK_UNARY(Floor, floor(x))
PK_UNARY(Gelu, gelu<S>(x))
PK_UNARY(GeluTanh, gelu_tanh<S>(x))
PK_UNARY(IsFinite, is_finite(x))
PK_UNARY(IsInfinite, is_infinite(x))
PK_UNARY(IsNan, is_nan(x))
PK_UNARY(Log, log(x))
PK_UNARY(Log10, log10(x))
PK_UNARY(Log1p, log1p(x))
PK_UNARY(Log2, log2(x))
PK_UNARY(Negate, negate(x))
PK_UNARY(Relu2, relu2(x))
PK_UNARY(Round, rint(x))
PK_UNARY(Rsqrt, rsqrt(x))
PK_UNARY(Sigmoid, sigmoid<S>(x))
PK_UNARY(Sign, sign(x))
PK_UNARY(SignBit, sign_bit(x))
PK_UNARY(Silu, silu<S>(x))
PK_UNARY(Sin, sin(x))
PK_UNARY(Sinh, sinh(x))
PK_UNARY(Sqrt, sqrt(x))
PK_UNARY(Tan, tan(x))
PK_UNARY(Tanh, tanh(x))
PK_UNARY(Trunc, trunc(x))
#undef PK_UNARY

struct Exp {
  template <class D, class S>
  static __device__ __forceinline__ D apply(S element) {
    if constexpr (is_small_float<S>) return convert<D>::from(brief::exp(widen(element)));
    else return convert<D>::from(exp(widen(element)));
  }
};
struct ReciprocalOfInteger {  // 1 / x rounded towards zero; 0 of 0
  template <class D, class S>
  static __device__ __forceinline__ D apply(S x) {
    return x == S(1) || x == static_cast<S>(-1) && S(-1) < S(0) ? x : S(0);
  }
};

// ---- two operands ----

#define PK_BINARY(Name, expression)                              \
  struct Name {                                                  \
    template <class O, class T>                                  \
    static __device__ __forceinline__ O apply(T left, T right) { \
      const auto a = widen(left);                                \
      const auto b = widen(right);                               \
      return convert<O>::from(expression);                       \
    }                                                            \
  };

// A NaN in either operand is the result.
template <class T>
__device__ __forceinline__ T maximum(T a, T b) {
  return a >= b || a != a ? a : b;
}
template <class T>
__device__ __forceinline__ T minimum(T a, T b) {
  return a <= b || a != a ? a : b;
}
template <class T>
__device__ __forceinline__ T floored_quotient(T a, T b) {
  if constexpr (T(0.5) != T(0)) return floor_divide(a, b);
  else return floor_divide_integers(a, b);
}
template <class T>
__device__ __forceinline__ T floored_rest(T a, T b) {
  if constexpr (T(0.5) != T(0)) return remainder(a, b);
  else return remainder_integers(a, b);
}
template <class T>
__device__ __forceinline__ T power(T a, T b) {
  if constexpr (T(0.5) != T(0)) return ::pow(a, b);
  else return power_integers(a, b);
}
// Shifts by as many bits as there are, or more, or by less than none, push every bit out.
template <class T>
__device__ __forceinline__ T shift_left(T a, T b) {
  const auto bits = static_cast<unsigned long long>(b);  // a negative count becomes a large one
  return bits < 8 * sizeof(T) ? static_cast<T>(static_cast<unsigned long long>(a) << bits) : T(0);
}
template <class T>
__device__ __forceinline__ T shift_right(T a, T b) {
  const auto bits = static_cast<unsigned long long>(b);
  if (bits < 8 * sizeof(T)) return static_cast<T>(a >> bits);
  return T(-1) < T(0) && (static_cast<unsigned long long>(a) >> 63) ? T(-1) : T(0);
}

PK_BINARY(Add, exact::add(a, b))
PK_BINARY(Subtract, exact::subtract(a, b))
PK_BINARY(Multiply, exact::multiply(a, b))
PK_BINARY(Divide, divide(a, b))
PK_BINARY(FloorDivide, floored_quotient(a, b))
PK_BINARY(Remainder, floored_rest(a, b))
PK_BINARY(Power, power(a, b))
PK_BINARY(Maximum, maximum(a, b))
PK_BINARY(Minimum, minimum(a, b))
PK_BINARY(Fmax, a >= b || b != b ? a : b)
PK_BINARY(Fmin, a <= b || b != b ? a : b)
PK_BINARY(Atan2, ::atan2(a, b))
PK_BINARY(Hypot, ::hypot(a, b))
PK_BINARY(CopySign, ::copysign(a, b))
PK_BINARY(LogAddExp, log_add_exp(a, b))
PK_BINARY(BitAnd, a &b)
PK_BINARY(BitOr, a | b)
PK_BINARY(BitXor, a ^ b)
PK_BINARY(ShiftLeft, shift_left(a, b))
PK_BINARY(ShiftRight, shift_right(a, b))
PK_BINARY(Equal, a == b)
PK_BINARY(NotEqual, !(a == b))
PK_BINARY(Less, a < b)
PK_BINARY(LessEqual, a <= b)
PK_BINARY(Swiglu, silu<T>(a) * b)
PK_BINARY(Geglu, gelu<T>(a) * b)
#undef PK_BINARY

struct NextAfter {
  template <class O, class T>
  static __device__ __forceinline__ O apply(T a, T b) {
    return next_after(a, b);
  }
};

// Operands the other way round: a scalar on the left.
template <class Op>
struct Swapped {
  template <class O, class T>
  static __device__ __forceinline__ O apply(T a, T b) {
    return Op::template apply<O>(b, a);
  }
};

// ---- three operands; the first may have a type of its own ----

struct Select {
  template <class O, class C, class T>
  static __device__ __forceinline__ O apply(C condition, T a, T b) {
    return condition ? a : b;
  }
};
struct Clamp {
  template <class O, class C, class T>
  static __device__ __forceinline__ O apply(C element, T lower, T upper) {
    return convert<O>::from(minimum(maximum(widen(element), widen(lower)), widen(upper)));
  }
};

}  // namespace pk
