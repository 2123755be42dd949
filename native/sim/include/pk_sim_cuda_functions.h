// pk_sim_cuda_functions.h: cuda::std's algorithms on two values, function objects, bits and mathematics.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_types.h"

namespace cuda {
namespace std {

template <class T>
constexpr const T &min(const T &a, const T &b) {
  return b < a ? b : a;
}
template <class T>
constexpr const T &max(const T &a, const T &b) {
  return a < b ? b : a;
}
template <class T, class Less>
constexpr const T &min(const T &a, const T &b, Less less) {
  return less(b, a) ? b : a;
}
template <class T, class Less>
constexpr const T &max(const T &a, const T &b, Less less) {
  return less(a, b) ? b : a;
}
template <class T>
constexpr const T &clamp(const T &value, const T &low, const T &high) {
  return value < low ? low : high < value ? high : value;
}

#define PK_SIM_BINARY(name, Result, ...)                                              \
  template <class T = void>                                                           \
  struct name {                                                                       \
    constexpr Result operator()(const T &a, const T &b) const { return __VA_ARGS__; } \
  };                                                                                  \
  template <>                                                                         \
  struct name<void> {                                                                 \
    template <class A, class B>                                                       \
    constexpr auto operator()(const A &a, const B &b) const {                         \
      return __VA_ARGS__;                                                             \
    }                                                                                 \
  };
PK_SIM_BINARY(plus, T, a + b)
PK_SIM_BINARY(minus, T, a - b)
PK_SIM_BINARY(multiplies, T, a *b)
PK_SIM_BINARY(divides, T, a / b)
PK_SIM_BINARY(modulus, T, a % b)
PK_SIM_BINARY(bit_and, T, a &b)
PK_SIM_BINARY(bit_or, T, a | b)
PK_SIM_BINARY(bit_xor, T, a ^ b)
PK_SIM_BINARY(less, bool, a < b)
PK_SIM_BINARY(less_equal, bool, a <= b)
PK_SIM_BINARY(greater, bool, a > b)
PK_SIM_BINARY(greater_equal, bool, a >= b)
PK_SIM_BINARY(equal_to, bool, a == b)
PK_SIM_BINARY(not_equal_to, bool, a != b)
PK_SIM_BINARY(logical_and, bool, a &&b)
PK_SIM_BINARY(logical_or, bool, a || b)
#undef PK_SIM_BINARY
struct identity {
  template <class T>
  constexpr T &&operator()(T &&value) const noexcept {
    return forward<T>(value);
  }
};

template <class To, class From>
PK_SIM_INLINE To bit_cast(const From &from) noexcept {
  static_assert(sizeof(To) == sizeof(From), "bit_cast takes types of the same size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
template <class T>
constexpr int popcount(T x) noexcept {
  return __builtin_popcountll(x);
}
template <class T>
constexpr int countl_zero(T x) noexcept {
  return x ? __builtin_clzll(x) - (64 - 8 * (int)sizeof(T)) : 8 * (int)sizeof(T);
}
template <class T>
constexpr int countr_zero(T x) noexcept {
  return x ? __builtin_ctzll(x) : 8 * (int)sizeof(T);
}
template <class T>
constexpr int countl_one(T x) noexcept {
  return countl_zero(T(~x));
}
template <class T>
constexpr int countr_one(T x) noexcept {
  return countr_zero(T(~x));
}
template <class T>
constexpr int bit_width(T x) noexcept {
  return 8 * (int)sizeof(T) - countl_zero(x);
}
template <class T>
constexpr bool has_single_bit(T x) noexcept {
  return x && !(x & (x - 1));
}
template <class T>
constexpr T bit_floor(T x) noexcept {
  return x ? T(T(1) << (bit_width(x) - 1)) : T(0);
}
template <class T>
constexpr T bit_ceil(T x) noexcept {
  return x <= 1 ? T(1) : T(T(1) << bit_width(T(x - 1)));
}
template <class T>
constexpr T rotl(T x, int n) noexcept {
  constexpr int bits = 8 * sizeof(T);
  return T(x << (n & (bits - 1)) | x >> (-n & (bits - 1)));
}
template <class T>
constexpr T rotr(T x, int n) noexcept {
  return rotl(x, -n);
}

using namespace pk_sim_library;  // mathematics

}  // namespace std

template <class A, class B>
constexpr ::cuda::std::common_type_t<A, B> ceil_div(A a, B b) {
  return (a + b - 1) / b;
}
template <class A, class B>
constexpr ::cuda::std::common_type_t<A, B> round_up(A a, B b) {
  return ceil_div(a, b) * b;
}
}  // namespace cuda
