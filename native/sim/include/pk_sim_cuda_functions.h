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
template <class A, class B>
constexpr ::cuda::std::common_type_t<A, B> round_down(A a, B b) {
  return a / b * b;
}
template <class T>
constexpr int ilog2(T x) {
  return ::cuda::std::bit_width(::cuda::std::make_unsigned_t<T>(x)) - 1;
}
template <class T>
constexpr int ceil_ilog2(T x) {
  return x <= 1 ? 0 : ilog2(T(x - 1)) + 1;
}
template <class T>
constexpr int ilog10(T x) {
  int digits = -1;
  for (; x; x /= 10) ++digits;
  return digits;
}
template <class T>
constexpr bool is_power_of_two(T x) {
  return x > 0 && !(x & (x - 1));
}
template <class T>
constexpr T next_power_of_two(T x) {
  return T(::cuda::std::bit_ceil(::cuda::std::make_unsigned_t<T>(x)));
}
template <class T>
constexpr T prev_power_of_two(T x) {
  return T(::cuda::std::bit_floor(::cuda::std::make_unsigned_t<T>(x)));
}
template <class T>
constexpr ::cuda::std::make_unsigned_t<T> uabs(T x) {
  typedef ::cuda::std::make_unsigned_t<T> U;
  return x < 0 ? U(0) - U(x) : U(x);
}
template <class T>
constexpr T isqrt(T x) {
  T root = 0;
  for (T bit = T(1) << (4 * sizeof(T) - 1); bit; bit >>= 1)
    if ((root | bit) <= x / (root | bit)) root |= bit;
  return root;
}

// ---- fields of bits
template <class T = unsigned>
constexpr T bitmask(int start, int width) {
  return width >= 8 * (int)sizeof(T) ? T(~T(0) << start) : T(((T(1) << width) - 1) << start);
}
template <class T>
constexpr T bitfield_extract(T x, int start, int width) {
  return T(x >> start) & bitmask<T>(0, width);
}
template <class T>
constexpr T bitfield_insert(T to, T bits, int start, int width) {
  return T((to & ~bitmask<T>(start, width)) | (T(bits << start) & bitmask<T>(start, width)));
}
template <class T>
constexpr T bit_reverse(T x) {
  T turned = 0;
  for (int i = 0; i < 8 * (int)sizeof(T); ++i, x >>= 1) turned = T(turned << 1 | (x & 1));
  return turned;
}

// ---- function objects
template <class Result, class F>
struct pk_sim_returning {
  F call;
  template <class... A>
  constexpr Result operator()(A &&...arguments) const {
    return call(::cuda::std::forward<A>(arguments)...);
  }
};
template <class Result, class F>
constexpr pk_sim_returning<Result, ::cuda::std::decay_t<F>> proclaim_return_type(F &&call) {
  return {::cuda::std::forward<F>(call)};
}
#define PK_SIM_EXTREME(name, which)                                                       \
  template <class T = void>                                                               \
  struct name {                                                                           \
    constexpr T operator()(const T &a, const T &b) const { return which; }                \
  };                                                                                      \
  template <>                                                                             \
  struct name<void> {                                                                     \
    template <class A, class B>                                                           \
    constexpr ::cuda::std::common_type_t<A, B> operator()(const A &a, const B &b) const { \
      return which;                                                                       \
    }                                                                                     \
  };
PK_SIM_EXTREME(maximum, a < b ? b : a)
PK_SIM_EXTREME(minimum, b < a ? b : a)
#undef PK_SIM_EXTREME
}  // namespace cuda
