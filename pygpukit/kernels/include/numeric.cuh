// numeric.cuh: element types of the built-in kernels, their arithmetic, and by-value layouts. Needs no CUDA header.
#pragma once

namespace pk {

// ---- element types that CUDA C++ does not have without its headers ----

struct half_t {
  unsigned short bits;
};

struct bfloat16_t {
  unsigned short bits;
};

template <class R>
struct alignas(2 * sizeof(R)) complex_t {
  R re, im;
};

// ---- compute types: what an element becomes in registers ----

template <class T>
struct compute {
  using type = T;
};
template <>
struct compute<half_t> {
  using type = float;
};
template <>
struct compute<bfloat16_t> {
  using type = float;
};
template <class T>
using compute_t = typename compute<T>::type;

template <class T>
__device__ __forceinline__ T widen(T value) {
  return value;
}
// A float with an odd last bit unless it is exact, so that a second rounding sees on which side of a middle the value is.
__device__ __forceinline__ float to_odd(double value) {
  const float near = static_cast<float>(value);
  const double rest = value - static_cast<double>(near);
  unsigned bits = __float_as_uint(near);
  if (rest != 0 && near != 0 && (bits & 1u) == 0 && near - near == 0) bits += ((rest > 0) == (near > 0)) ? 1u : -1u;
  return __uint_as_float(bits);
}
// An integer as a double that a second rounding, to at most 52 bits, rounds as it would the integer.
template <class I>
__device__ __forceinline__ double to_double(I value) {
  if constexpr (sizeof(I) == 8 && I(1) / I(2) == I(0)) {
    const I low = value & I(0xfff);
    const bool exact = low == 0 || (value < (I(1) << 53) && (I(-1) > I(0) || value > -(I(1) << 53)));
    if (!exact) return static_cast<double>((value - low) | I(0x800));
  }
  return static_cast<double>(value);
}
__device__ __forceinline__ float widen(half_t value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
__device__ __forceinline__ half_t to_half(float value) {
  half_t result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}
__device__ __forceinline__ half_t to_half(double value) {
  half_t result;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(result.bits) : "d"(value));
  return result;
}
__device__ __forceinline__ float widen(bfloat16_t value) { return __uint_as_float(unsigned(value.bits) << 16); }
// Round to nearest even; a NaN stays a NaN.
__device__ __forceinline__ bfloat16_t to_bfloat16(float value) {
  bfloat16_t result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

// ---- conversion of any element type to any other, as NumPy's astype (out-of-range floats to integers are undefined)
// ----

template <class D>
struct convert {
  template <class S>
  static __device__ __forceinline__ D from(S value) {
    return static_cast<D>(widen(value));
  }
  template <class R>
  static __device__ __forceinline__ D from(complex_t<R> value) {
    return static_cast<D>(value.re);
  }
};
template <>
struct convert<bool> {
  template <class S>
  static __device__ __forceinline__ bool from(S value) {
    return widen(value) != 0;
  }
  template <class R>
  static __device__ __forceinline__ bool from(complex_t<R> value) {
    return value.re != 0 || value.im != 0;
  }
};
template <>
struct convert<half_t> {
  static __device__ __forceinline__ half_t from(half_t value) { return value; }
  static __device__ __forceinline__ half_t from(bfloat16_t value) { return to_half(widen(value)); }
  static __device__ __forceinline__ half_t from(float value) { return to_half(value); }
  template <class S>
  static __device__ __forceinline__ half_t from(S value) {
    return to_half(static_cast<double>(widen(value)));  // integers and double: rounded once
  }
  template <class R>
  static __device__ __forceinline__ half_t from(complex_t<R> value) {
    return to_half(value.re);
  }
};
template <>
struct convert<bfloat16_t> {
  static __device__ __forceinline__ bfloat16_t from(bfloat16_t value) { return value; }
  static __device__ __forceinline__ bfloat16_t from(half_t value) { return to_bfloat16(widen(value)); }
  static __device__ __forceinline__ bfloat16_t from(float value) { return to_bfloat16(value); }
  template <class S>
  static __device__ __forceinline__ bfloat16_t from(S value) {
    return to_bfloat16(to_odd(to_double(widen(value))));  // integers and double: rounded once
  }
  template <class R>
  static __device__ __forceinline__ bfloat16_t from(complex_t<R> value) {
    return from(value.re);
  }
};
template <class Q>
struct convert<complex_t<Q>> {
  template <class S>
  static __device__ __forceinline__ complex_t<Q> from(S value) {
    return {static_cast<Q>(widen(value)), Q(0)};
  }
  template <class R>
  static __device__ __forceinline__ complex_t<Q> from(complex_t<R> value) {
    return {static_cast<Q>(value.re), static_cast<Q>(value.im)};
  }
};

// ---- arithmetic on compute types; integers wrap, so they are computed unsigned ----

template <class T>
struct wrapping {
  using type = T;
};
template <>
struct wrapping<signed char> {
  using type = unsigned;
};
template <>
struct wrapping<short> {
  using type = unsigned;
};
template <>
struct wrapping<unsigned short> {  // promotes to int, where a product can overflow
  using type = unsigned;
};
template <>
struct wrapping<int> {
  using type = unsigned;
};
template <>
struct wrapping<long long> {
  using type = unsigned long long;
};
template <class T>
using wrapping_t = typename wrapping<T>::type;

template <class T>
__device__ __forceinline__ T add(T a, T b) {
  return static_cast<T>(wrapping_t<T>(a) + wrapping_t<T>(b));
}
template <class T>
__device__ __forceinline__ T subtract(T a, T b) {
  return static_cast<T>(wrapping_t<T>(a) - wrapping_t<T>(b));
}
template <class T>
__device__ __forceinline__ T multiply(T a, T b) {
  return static_cast<T>(wrapping_t<T>(a) * wrapping_t<T>(b));
}
template <class T>
__device__ __forceinline__ T divide(T a, T b) {
  return a / b;
}
template <class T>
__device__ __forceinline__ T negate(T a) {
  if constexpr (T(0.5) != T(0)) return -a;  // a float: keeps the sign of zero
  return static_cast<T>(wrapping_t<T>(0) - wrapping_t<T>(a));
}

template <class R>
__device__ __forceinline__ complex_t<R> add(complex_t<R> a, complex_t<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R>
__device__ __forceinline__ complex_t<R> subtract(complex_t<R> a, complex_t<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R>
__device__ __forceinline__ complex_t<R> multiply(complex_t<R> a, complex_t<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Smith's method: scales by the larger part, so that the square of neither overflows.
template <class R>
__device__ __forceinline__ complex_t<R> divide(complex_t<R> a, complex_t<R> b) {
  const R re = b.re < 0 ? -b.re : b.re;
  const R im = b.im < 0 ? -b.im : b.im;
  if (re >= im) {
    if (re == 0 && im == 0) return {a.re / re, a.im / re};
    const R ratio = b.im / b.re;
    const R scale = R(1) / (b.re + b.im * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  const R ratio = b.re / b.im;
  const R scale = R(1) / (b.im + b.re * ratio);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class R>
__device__ __forceinline__ complex_t<R> negate(complex_t<R> a) {
  return {-a.re, -a.im};
}
template <class R>
__device__ __forceinline__ bool operator==(complex_t<R> a, complex_t<R> b) {
  return a.re == b.re && a.im == b.im;
}

// ---- layouts: how several operands are walked together; passed by value ----

constexpr int kMaxDims = 16;

template <int Operands>
struct Layout {
  long long size;  // elements
  long long ndim;
  long long shape[kMaxDims];
  long long start[Operands];             // elements from the pointer to the first element
  long long stride[Operands][kMaxDims];  // elements
};

// Element offsets of the index-th element in C order. Index is 32 bits wide where that is enough: division is cheaper.
template <class Index, int Operands>
__device__ __forceinline__ void locate(const Layout<Operands> &layout, Index index, long long (&at)[Operands]) {
  for (int k = 0; k < Operands; ++k) at[k] = layout.start[k];
  for (long long axis = layout.ndim - 1; axis >= 0; --axis) {
    const Index extent = static_cast<Index>(layout.shape[axis]);
    const Index above = index / extent;
    const long long here = static_cast<long long>(index - above * extent);
    for (int k = 0; k < Operands; ++k) at[k] += here * layout.stride[k][axis];
    index = above;
  }
}

template <int Operands>
__device__ __forceinline__ void locate(const Layout<Operands> &layout, long long index, long long (&at)[Operands]) {
  if (layout.size <= 0x7fffffffLL) {
    locate<unsigned, Operands>(layout, static_cast<unsigned>(index), at);
  } else {
    locate<unsigned long long, Operands>(layout, static_cast<unsigned long long>(index), at);
  }
}

}  // namespace pk
