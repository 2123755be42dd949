// pk_sim_cuda_tuple.h: cuda::std's tuple, and pairs and arrays as tuples, also in structured bindings.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_values.h"

namespace cuda {
namespace std {

template <size_t I, class T>
struct pk_sim_leaf {
  T value;
};
template <class Indices, class... T>
struct pk_sim_leaves;
template <size_t... I, class... T>
struct pk_sim_leaves<index_sequence<I...>, T...> : pk_sim_leaf<I, T>... {};
template <size_t I, class T>
constexpr T &get(pk_sim_leaf<I, T> &leaf) noexcept {
  return leaf.value;
}
template <size_t I, class T>
constexpr const T &get(const pk_sim_leaf<I, T> &leaf) noexcept {
  return leaf.value;
}
template <size_t I, class T>
constexpr T &&get(pk_sim_leaf<I, T> &&leaf) noexcept {
  return static_cast<T &&>(leaf.value);
}
template <class T, size_t I>
constexpr T &get(pk_sim_leaf<I, T> &leaf) noexcept {
  return leaf.value;
}
template <class T, size_t I>
constexpr const T &get(const pk_sim_leaf<I, T> &leaf) noexcept {
  return leaf.value;
}

template <class... T>
struct tuple : pk_sim_leaves<index_sequence_for<T...>, T...> {
  typedef pk_sim_leaves<index_sequence_for<T...>, T...> pk_sim_base;
  constexpr tuple() = default;
  constexpr tuple(const tuple &) = default;
  constexpr tuple(const T &...values) : pk_sim_base{{values}...} {}
  template <class... U, class = enable_if_t<sizeof...(U) == sizeof...(T) && conjunction_v<is_convertible<U &&, T>...>>>
  constexpr tuple(U &&...values) : pk_sim_base{{static_cast<T>(forward<U>(values))}...} {}
  template <class... U, class = enable_if_t<sizeof...(U) == sizeof...(T)>>
  constexpr tuple(const tuple<U...> &other) : tuple(other, index_sequence_for<T...>{}) {}
  constexpr tuple &operator=(const tuple &other) { return assign(other, index_sequence_for<T...>{}); }
  template <class... U>
  constexpr tuple &operator=(const tuple<U...> &other) {
    return assign(other, index_sequence_for<T...>{});
  }

 private:
  template <class Other, size_t... I>
  constexpr tuple(const Other &other, index_sequence<I...>) : pk_sim_base{{static_cast<T>(get<I>(other))}...} {}
  template <class Other, size_t... I>
  constexpr tuple &assign(const Other &other, index_sequence<I...>) {
    ((get<I>(*this) = get<I>(other)), ...);
    return *this;
  }
};
template <>
struct tuple<> {};
template <class... T>
tuple(T...) -> tuple<T...>;
template <class... T>
constexpr tuple<decay_t<T>...> make_tuple(T &&...values) {
  return {forward<T>(values)...};
}
template <class... T>
constexpr tuple<T &...> tie(T &...places) {
  return {places...};
}
template <class... T>
constexpr tuple<T &&...> forward_as_tuple(T &&...values) {
  return {forward<T>(values)...};
}

// ---- pairs and arrays
template <size_t I, class A, class B>
constexpr auto &get(pair<A, B> &both) noexcept {
  if constexpr (I == 0)
    return both.first;
  else
    return both.second;
}
template <size_t I, class A, class B>
constexpr const auto &get(const pair<A, B> &both) noexcept {
  if constexpr (I == 0)
    return both.first;
  else
    return both.second;
}
template <size_t I, class T, size_t N>
constexpr T &get(array<T, N> &all) noexcept {
  return all[I];
}
template <size_t I, class T, size_t N>
constexpr const T &get(const array<T, N> &all) noexcept {
  return all[I];
}

template <class... T>
struct tuple_size<tuple<T...>> : integral_constant<size_t, sizeof...(T)> {};
template <class A, class B>
struct tuple_size<pair<A, B>> : integral_constant<size_t, 2> {};
template <class T, size_t N>
struct tuple_size<array<T, N>> : integral_constant<size_t, N> {};
template <class A, class... T>
struct tuple_element<0, tuple<A, T...>> : type_identity<A> {};
template <size_t I, class A, class... T>
struct tuple_element<I, tuple<A, T...>> : tuple_element<I - 1, tuple<T...>> {};
template <size_t I, class A, class B>
struct tuple_element<I, pair<A, B>> : conditional<I == 0, A, B> {};
template <size_t I, class T, size_t N>
struct tuple_element<I, array<T, N>> : type_identity<T> {};

template <class F, class Tuple, size_t... I>
constexpr decltype(auto) pk_sim_apply(F &&call, Tuple &&all, index_sequence<I...>) {
  return forward<F>(call)(get<I>(forward<Tuple>(all))...);
}
template <class F, class Tuple>
constexpr decltype(auto) apply(F &&call, Tuple &&all) {
  return pk_sim_apply(forward<F>(call), forward<Tuple>(all),
                      make_index_sequence<tuple_size_v<remove_cvref_t<Tuple>>>{});
}
template <size_t... I, class A, class B>
constexpr int pk_sim_compare(const A &a, const B &b, index_sequence<I...>) {
  int found = 0;
  ((found = found ? found : get<I>(a) < get<I>(b) ? -1 : get<I>(b) < get<I>(a) ? 1 : 0), ...);
  return found;
}
#define PK_SIM_COMPARE(sign)                                                 \
  template <class... T, class... U>                                          \
  constexpr bool operator sign(const tuple<T...> &a, const tuple<U...> &b) { \
    return pk_sim_compare(a, b, index_sequence_for<T...>{}) sign 0;          \
  }
PK_SIM_COMPARE(==)
PK_SIM_COMPARE(!=)
PK_SIM_COMPARE(<)
PK_SIM_COMPARE(<=)
PK_SIM_COMPARE(>)
PK_SIM_COMPARE(>=)
#undef PK_SIM_COMPARE

}  // namespace std
}  // namespace cuda

// What the compiler asks of a type that is taken apart.
namespace std {
#define PK_SIM_APART(Parameters, ...)                                                           \
  template <Parameters>                                                                         \
  struct tuple_size<cuda::std::__VA_ARGS__> : cuda::std::tuple_size<cuda::std::__VA_ARGS__> {}; \
  template <size_t I, Parameters>                                                               \
  struct tuple_element<I, cuda::std::__VA_ARGS__> : cuda::std::tuple_element<I, cuda::std::__VA_ARGS__> {};
#define PK_SIM_COMMA ,
PK_SIM_APART(class... T, tuple<T...>)
PK_SIM_APART(class A PK_SIM_COMMA class B, pair<A PK_SIM_COMMA B>)
PK_SIM_APART(class T PK_SIM_COMMA size_t N, array<T PK_SIM_COMMA N>)
#undef PK_SIM_COMMA
#undef PK_SIM_APART
}  // namespace std
