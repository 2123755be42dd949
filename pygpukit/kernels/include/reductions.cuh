// reductions.cuh: what can be reduced: per operation its state, how elements enter it, how two states become one.
//
// An operation has Input, State and Output, identity(), batch(values, index of the first, index step) for a few
// elements at once, combine(earlier, later) and finish(state). Floats of 16 bits are computed in float.
#pragma once
#include "rows.cuh"

namespace pk {

// What the host adds to the types: a bit mask or a count, and a divisor.
struct Setting {
  unsigned long long bits;
  double real;
};

// A balanced tree over N elements of an operation with lift(element).
template <int N, class Op, class T>
__device__ __forceinline__ typename Op::State tree(const Op &op, const T *values) {
  if constexpr (N == 1) {
    return op.lift(values[0]);
  } else {
    return op.combine(tree<N / 2>(op, values), tree<N - N / 2>(op, values + N / 2));
  }
}

#define PK_BATCH_BY_TREE                                                                        \
  template <int N>                                                                              \
  __device__ __forceinline__ State batch(const Input(&values)[N], long long, long long) const { \
    return tree<N>(*this, values);                                                              \
  }

template <class A>
__device__ __forceinline__ A divided(A value, double divisor) {
  return value / static_cast<A>(divisor);
}
__device__ __forceinline__ long long divided(long long value, double) { return value; }
template <class R>
__device__ __forceinline__ complex_t<R> divided(complex_t<R> value, double divisor) {
  return {value.re / static_cast<R>(divisor), value.im / static_cast<R>(divisor)};
}

// Neighbours from `first` on, which come after all that the state has already. Once all have entered, settle() may look
// at some of them again: fetch(i) is element i, and there are `end` of them.
template <class Op, int N>
__device__ __forceinline__ void absorb(const Op &op, typename Op::State &state, const typename Op::Input (&values)[N],
                                       long long first) {
  state = op.combine(state, op.batch(values, first, 1));
}
template <int N, class Op, class Fetch>
__device__ __forceinline__ void settle(const Op &, typename Op::State &, long long, Fetch) {}

// Sum / divisor: sums (divisor 1) and means. Integers are never divided.
template <class T, class A, class D>
struct Sum {
  using Input = T;
  using State = A;
  using Output = D;
  Setting setting;
  __device__ __forceinline__ State identity() const { return convert<A>::from(0.0f); }
  __device__ __forceinline__ State lift(T value) const { return convert<A>::from(value); }
  PK_BATCH_BY_TREE
  __device__ __forceinline__ State combine(State a, State b) const { return add(a, b); }
  __device__ __forceinline__ D finish(State s) const { return convert<D>::from(divided(s, setting.real)); }
};

template <class T, class A, class D>
struct Product {
  using Input = T;
  using State = A;
  using Output = D;
  Setting setting;
  __device__ __forceinline__ State identity() const { return convert<A>::from(1.0f); }
  __device__ __forceinline__ State lift(T value) const { return convert<A>::from(value); }
  PK_BATCH_BY_TREE
  __device__ __forceinline__ State combine(State a, State b) const { return multiply(a, b); }
  __device__ __forceinline__ D finish(State s) const { return convert<D>::from(s); }
};

// ---- order; with all bits of the setting set, values are mirrored so that the largest is the smallest ----

template <class C>
__device__ __forceinline__ C mirrored(C value, unsigned long long bits) {
  return static_cast<C>(value ^ static_cast<C>(bits));
}
__device__ __forceinline__ float mirrored(float value, unsigned long long bits) {
  return __uint_as_float(__float_as_uint(value) ^ (static_cast<unsigned>(bits) & 0x80000000u));
}
__device__ __forceinline__ double mirrored(double value, unsigned long long bits) {
  return __longlong_as_double(__double_as_longlong(value) ^ static_cast<long long>(bits & 0x8000000000000000ull));
}

// NaN is above everything and never below another NaN.
template <class C>
__device__ __forceinline__ bool above(C a, C b) {
  if constexpr (C(0.5) != C(0)) return !(a <= b) && b == b;
  return a > b;
}

template <class C>
__device__ __forceinline__ C lowest() {
  if constexpr (C(0.5) != C(0)) return static_cast<C>(-__uint_as_float(0x7f800000u));
  if constexpr (C(-1) < C(0)) return static_cast<C>(1ull << (8 * sizeof(C) - 1));
  return C(0);
}

template <class T>
struct Extreme {
  using Input = T;
  using State = compute_t<T>;
  using Output = T;
  Setting setting;
  __device__ __forceinline__ State identity() const { return lowest<State>(); }
  __device__ __forceinline__ State lift(T value) const { return mirrored(widen(value), setting.bits); }
  PK_BATCH_BY_TREE
  __device__ __forceinline__ State combine(State a, State b) const { return above(b, a) ? b : a; }
  __device__ __forceinline__ T finish(State s) const { return convert<T>::from(mirrored(s, setting.bits)); }
};

template <class C>
struct Place {
  C value;
  long long index;  // -1: no element yet
};

// The largest of a few mirrored elements; NaN, where there is one.
template <int N, class T>
__device__ __forceinline__ compute_t<T> largest(const T (&values)[N], unsigned long long bits) {
  compute_t<T> best = mirrored(widen(values[0]), bits);
  for (int k = 1; k < N; ++k) best = Larger()(best, mirrored(widen(values[k]), bits));
  return best;
}

// Two at a time.
__device__ __forceinline__ unsigned larger_pair(unsigned a, unsigned b, bfloat16_t) {
  unsigned result;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
__device__ __forceinline__ unsigned larger_pair(unsigned a, unsigned b, half_t) {
  unsigned result;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
template <class T>
__device__ __forceinline__ float largest_of_pairs(const T (&values)[8], unsigned long long bits) {
  Bits<T, 8> all;
  for (int k = 0; k < 8; ++k) all.pack.v[k] = values[k];
  const unsigned flip = bits ? 0x80008000u : 0u;
  unsigned best = all.words.v[0] ^ flip;
  for (int k = 1; k < 4; ++k) best = larger_pair(best, all.words.v[k] ^ flip, T());
  return Larger()(widen(T{static_cast<unsigned short>(best)}), widen(T{static_cast<unsigned short>(best >> 16)}));
}
template <>
__device__ __forceinline__ float largest<8, bfloat16_t>(const bfloat16_t (&values)[8], unsigned long long bits) {
  return largest_of_pairs(values, bits);
}
template <>
__device__ __forceinline__ float largest<8, half_t>(const half_t (&values)[8], unsigned long long bits) {
  return largest_of_pairs(values, bits);
}

// The first of the largest elements.
template <class T>
struct ArgExtreme {
  using Input = T;
  using Value = compute_t<T>;
  using State = Place<Value>;
  using Output = long long;
  Setting setting;
  __device__ __forceinline__ State identity() const { return {Value(0), -1}; }
  template <int N>
  __device__ __forceinline__ State batch(const T (&values)[N], long long first, long long step) const {
    Value best = mirrored(widen(values[0]), setting.bits);
    int place = 0;
    for (int k = 1; k < N; ++k) {
      const Value value = mirrored(widen(values[k]), setting.bits);
      if (above(value, best)) {
        best = value;
        place = k;
      }
    }
    return {best, first + place * step};
  }
  __device__ __forceinline__ State combine(const State &a, const State &b) const {
    if (b.index < 0) return a;
    if (a.index < 0 || above(b.value, a.value)) return b;
    return b.index < a.index && !above(a.value, b.value) ? b : a;
  }
  __device__ __forceinline__ long long finish(const State &s) const { return s.index; }
};

// Only where they begin is kept of the neighbours among which the largest is; which it is, is found at the end.
template <class T, int N>
__device__ __forceinline__ void absorb(const ArgExtreme<T> &op, typename ArgExtreme<T>::State &state,
                                       const T (&values)[N], long long first) {
  const compute_t<T> best = largest(values, op.setting.bits);
  if (state.index >= 0 && !above(best, state.value)) return;
  state.value = best;
  state.index = first;
}
template <int N, class T, class Fetch>
__device__ __forceinline__ void settle(const ArgExtreme<T> &op, typename ArgExtreme<T>::State &state, long long end,
                                       Fetch fetch) {
  if (state.index < 0) return;
  int place = 0;
  for (int k = N - 1; k >= 0; --k) {
    if (state.index + k >= end) continue;
    if (!above(state.value, mirrored(widen(fetch(state.index + k)), op.setting.bits))) place = k;
  }
  state.index += place;
}

// ---- how many elements have a bit of the setting set: all but the sign bit of floats, all bits of integers ----

__device__ __forceinline__ long long thresholded(long long count, const Setting &, long long) { return count; }
__device__ __forceinline__ bool thresholded(long long count, const Setting &setting, bool) {
  return static_cast<double>(count) >= setting.real;
}

// D = long long: the count; D = bool: whether it reaches the setting's number (1 is "any", all elements is "all").
template <class T, class D>
struct Nonzero {
  using Input = T;
  using State = long long;
  using Output = D;
  Setting setting;
  __device__ __forceinline__ State identity() const { return 0; }
  __device__ __forceinline__ State lift(T value) const { return (value & static_cast<T>(setting.bits)) != 0; }
  PK_BATCH_BY_TREE
  __device__ __forceinline__ State combine(State a, State b) const { return a + b; }
  __device__ __forceinline__ D finish(State s) const { return thresholded(s, setting, D()); }
};
template <class D>
struct Nonzero<complex_t<double>, D> {
  using Input = complex_t<double>;
  using State = long long;
  using Output = D;
  Setting setting;
  __device__ __forceinline__ State identity() const { return 0; }
  __device__ __forceinline__ State lift(Input value) const { return value.re != 0 || value.im != 0; }
  PK_BATCH_BY_TREE
  __device__ __forceinline__ State combine(State a, State b) const { return a + b; }
  __device__ __forceinline__ D finish(State s) const { return thresholded(s, setting, D()); }
};

// ---- variance: counts, means and squared distances of groups, merged as Chan, Golub and LeVeque do (1979) ----

template <class A>
struct Group {
  A count, mean, square;
};

// square / |real|, and its root where the setting has a bit.
template <class T, class A, class D>
struct Moments {
  using Input = T;
  using State = Group<A>;
  using Output = D;
  Setting setting;
  __device__ __forceinline__ State identity() const { return {A(0), A(0), A(0)}; }
  template <int N>
  __device__ __forceinline__ State batch(const T (&values)[N], long long, long long) const {
    A sum = 0;
    for (int k = 0; k < N; ++k) sum += convert<A>::from(values[k]);
    const A mean = sum / A(N);
    A square = 0;
    for (int k = 0; k < N; ++k) {
      const A distance = convert<A>::from(values[k]) - mean;
      square += distance * distance;
    }
    return {A(N), mean, square};
  }
  __device__ __forceinline__ State combine(const State &a, const State &b) const {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const A count = a.count + b.count;
    const A part = b.count / count;
    const A distance = b.mean - a.mean;
    return {count, a.mean + distance * part, a.square + b.square + distance * distance * (a.count * part)};
  }
  __device__ __forceinline__ D finish(const State &s) const {
    const A variance = s.square / static_cast<A>(setting.real);
    return convert<D>::from(setting.bits ? sqrt(variance) : variance);
  }
};

// ---- the Euclidean norm ----

template <class T, class A, class D>
struct Norm {
  using Input = T;
  using State = A;
  using Output = D;
  Setting setting;
  __device__ __forceinline__ State identity() const { return A(0); }
  template <class S>
  static __device__ __forceinline__ A squared(S value) {
    return value * value;
  }
  template <class R>
  static __device__ __forceinline__ A squared(complex_t<R> value) {
    return value.re * value.re + value.im * value.im;
  }
  __device__ __forceinline__ State lift(T value) const { return squared(widen(value)); }
  PK_BATCH_BY_TREE
  __device__ __forceinline__ State combine(State a, State b) const { return a + b; }
  __device__ __forceinline__ D finish(State s) const { return convert<D>::from(sqrt(s)); }
};

// ---- log of the sum of exp, relative to the largest element so far ----

template <class A>
struct Exponentials {
  A top, sum;
};

template <class A>
__device__ __forceinline__ A reference(A top) {
  return top - top == 0 ? top : A(0);  // not finite: relative to 0
}

template <class T, class A, class D>
struct LogSumExp {
  using Input = T;
  using State = Exponentials<A>;
  using Output = D;
  Setting setting;
  __device__ __forceinline__ State identity() const { return {lowest<A>(), A(0)}; }
  template <int N>
  __device__ __forceinline__ State batch(const T (&values)[N], long long, long long) const {
    A top = convert<A>::from(values[0]);
    for (int k = 1; k < N; ++k) top = Larger()(top, convert<A>::from(values[k]));
    A sum = 0;
    for (int k = 0; k < N; ++k) sum += exp(convert<A>::from(values[k]) - reference(top));
    return {top, sum};
  }
  __device__ __forceinline__ State combine(const State &a, const State &b) const {
    const A top = Larger()(a.top, b.top);
    return {top, rebased(a, top) + rebased(b, top)};
  }
  static __device__ __forceinline__ A rebased(const State &s, A top) {
    return s.sum == 0 ? A(0) : s.sum * exp(reference(s.top) - reference(top));
  }
  __device__ __forceinline__ D finish(const State &s) const { return convert<D>::from(log(s.sum) + reference(s.top)); }
};

// ---- the second pass: states of parts instead of elements ----

template <class Op>
struct Merge {
  using Input = typename Op::State;
  using State = typename Op::State;
  using Output = typename Op::Output;
  Op op;
  __device__ __forceinline__ explicit Merge(const Setting &setting) : op{setting} {}
  __device__ __forceinline__ State identity() const { return op.identity(); }
  __device__ __forceinline__ const State &lift(const State &state) const { return state; }
  PK_BATCH_BY_TREE
  __device__ __forceinline__ State combine(const State &a, const State &b) const { return op.combine(a, b); }
  __device__ __forceinline__ Output finish(const State &s) const { return op.finish(s); }
};

#undef PK_BATCH_BY_TREE

}  // namespace pk
