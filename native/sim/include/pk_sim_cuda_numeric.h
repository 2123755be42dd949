// pk_sim_cuda_numeric.h: cuda::std's sums of ranges, and numbers from two.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_algorithm.h"

namespace cuda {
namespace std {

template <class I, class T, class F = plus<>>
constexpr T accumulate(I first, I last, T sum, F add = {}) {
  for (; first != last; ++first) sum = add(move(sum), *first);
  return sum;
}
template <class I, class T, class F = plus<>>
constexpr T reduce(I first, I last, T sum, F add = {}) {
  return accumulate(first, last, sum, add);
}
template <class I>
constexpr iter_value_t<I> reduce(I first, I last) {
  return accumulate(first, last, iter_value_t<I>{});
}
template <class I, class J, class T, class F = plus<>, class G = multiplies<>>
constexpr T inner_product(I first, I last, J other, T sum, F add = {}, G times = {}) {
  for (; first != last; ++first, ++other) sum = add(move(sum), times(*first, *other));
  return sum;
}
template <class I, class J, class T, class F = plus<>, class G = multiplies<>>
constexpr T transform_reduce(I first, I last, J other, T sum, F add = {}, G times = {}) {
  return inner_product(first, last, other, sum, add, times);
}
template <class I, class O, class F = plus<>>
constexpr O partial_sum(I first, I last, O to, F add = {}) {
  if (first == last) return to;
  iter_value_t<I> sum = *first;
  for (*to = sum; ++first != last; *++to = sum) sum = add(move(sum), *first);
  return ++to;
}
template <class I, class O, class F = plus<>>
constexpr O inclusive_scan(I first, I last, O to, F add = {}) {
  return partial_sum(first, last, to, add);
}
template <class I, class O, class T, class F = plus<>>
constexpr O exclusive_scan(I first, I last, O to, T sum, F add = {}) {
  for (; first != last; ++first, ++to) {
    const T after = add(sum, *first);
    *to = sum;
    sum = after;
  }
  return to;
}
template <class I, class O, class F = minus<>>
constexpr O adjacent_difference(I first, I last, O to, F apart = {}) {
  if (first == last) return to;
  iter_value_t<I> before = *first;
  for (*to = before; ++first != last;) {
    const iter_value_t<I> own = *first;
    *++to = apart(own, before);
    before = own;
  }
  return ++to;
}
template <class I, class T>
constexpr void iota(I first, I last, T value) {
  for (; first != last; ++first, ++value) *first = value;
}
template <class A, class B>
constexpr common_type_t<A, B> gcd(A a, B b) {
  common_type_t<A, B> x = a < 0 ? -a : a, y = b < 0 ? -b : b;
  while (y) {
    const auto left = x % y;
    x = y;
    y = left;
  }
  return x;
}
template <class A, class B>
constexpr common_type_t<A, B> lcm(A a, B b) {
  if (!a || !b) return 0;
  const common_type_t<A, B> x = a < 0 ? -a : a, y = b < 0 ? -b : b;
  return x / gcd(x, y) * y;
}
template <class T>
constexpr T midpoint(T a, T b) {
  if constexpr (is_floating_point_v<T>) {
    return a / 2 + b / 2;
  } else {
    typedef make_unsigned_t<T> U;
    return a > b ? T(a - T(U(U(a) - U(b)) / 2)) : T(a + T(U(U(b) - U(a)) / 2));
  }
}

}  // namespace std
}  // namespace cuda
