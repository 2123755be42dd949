// pk_sim_cuda_variant.h: cuda::std's variant and expected, of types that can be copied byte by byte.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_tuple.h"

namespace cuda {
namespace std {

struct monostate {};
template <size_t I>
struct in_place_index_t {};
template <size_t I>
inline constexpr in_place_index_t<I> in_place_index{};
template <class T>
struct in_place_type_t {};
template <class T>
inline constexpr in_place_type_t<T> in_place_type{};
inline constexpr size_t variant_npos = ~size_t(0);

template <class... N>
constexpr size_t pk_sim_most(N... numbers) {
  size_t most = 0;
  ((most = numbers > most ? numbers : most), ...);
  return most;
}
template <class T, class... All>
constexpr size_t pk_sim_index_of() {
  size_t found = 0;
  bool any = false;
  ((any = any || is_same_v<T, All>, found += any ? 0 : 1), ...);
  return found;
}
// Which alternative a value becomes: as if each were a function that takes it.
template <size_t I, class... T>
struct pk_sim_taking {
  static void take();
};
template <size_t I, class A, class... T>
struct pk_sim_taking<I, A, T...> : pk_sim_taking<I + 1, T...> {
  using pk_sim_taking<I + 1, T...>::take;
  static integral_constant<size_t, I> take(A);
};

template <class... T>
class variant {
  static_assert((is_trivially_copyable_v<T> && ...), "the simulated device has variants of plain types only");
  alignas(T...) char bytes_[pk_sim_most(sizeof(T)...)];
  size_t index_;

 public:
  template <size_t I>
  using pk_sim_at = tuple_element_t<I, tuple<T...>>;

  constexpr variant() : variant(in_place_index<0>) {}
  template <class V, class = enable_if_t<!is_same_v<remove_cvref_t<V>, variant>>,
            size_t I = decltype(pk_sim_taking<0, T...>::take(declval<V>()))::value>
  variant(V &&value) : variant(in_place_index<I>, forward<V>(value)) {}
  template <size_t I, class... A>
  variant(in_place_index_t<I>, A &&...arguments) : index_(I) {
    new ((void *)bytes_) pk_sim_at<I>(forward<A>(arguments)...);
  }
  template <class V, class... A>
  variant(in_place_type_t<V>, A &&...arguments)
      : variant(in_place_index<pk_sim_index_of<V, T...>()>, forward<A>(arguments)...) {}
  template <size_t I, class... A>
  pk_sim_at<I> &emplace(A &&...arguments) {
    *this = variant(in_place_index<I>, forward<A>(arguments)...);
    return *pk_sim_place<I>();
  }
  template <class V, class... A>
  V &emplace(A &&...arguments) {
    return emplace<pk_sim_index_of<V, T...>()>(forward<A>(arguments)...);
  }
  size_t index() const noexcept { return index_; }
  bool valueless_by_exception() const noexcept { return false; }
  template <size_t I>
  pk_sim_at<I> *pk_sim_place() const {
    return (pk_sim_at<I> *)bytes_;
  }
};
template <class T>
struct variant_size;
template <class... T>
struct variant_size<variant<T...>> : integral_constant<size_t, sizeof...(T)> {};
template <class T>
inline constexpr size_t variant_size_v = variant_size<T>::value;
template <size_t I, class T>
struct variant_alternative;
template <size_t I, class... T>
struct variant_alternative<I, variant<T...>> : tuple_element<I, tuple<T...>> {};
template <size_t I, class T>
using variant_alternative_t = typename variant_alternative<I, T>::type;

template <class V, class... T>
bool holds_alternative(const variant<T...> &one) {
  return one.index() == pk_sim_index_of<V, T...>();
}
template <size_t I, class... T>
variant_alternative_t<I, variant<T...>> *get_if(variant<T...> *one) {
  return one && one->index() == I ? one->template pk_sim_place<I>() : nullptr;
}
template <size_t I, class... T>
const variant_alternative_t<I, variant<T...>> *get_if(const variant<T...> *one) {
  return one && one->index() == I ? one->template pk_sim_place<I>() : nullptr;
}
template <class V, class... T>
V *get_if(variant<T...> *one) {
  return get_if<pk_sim_index_of<V, T...>()>(one);
}
template <class V, class... T>
const V *get_if(const variant<T...> *one) {
  return get_if<pk_sim_index_of<V, T...>()>(one);
}
#define PK_SIM_GET(Const)                                                                     \
  template <size_t I, class... T>                                                             \
  Const variant_alternative_t<I, variant<T...>> &get(Const variant<T...> &one, PK_SIM_HERE) { \
    if (one.index() != I) __trap(pk_sim_file, pk_sim_line);                                   \
    return *one.template pk_sim_place<I>();                                                   \
  }                                                                                           \
  template <class V, class... T>                                                              \
  Const V &get(Const variant<T...> &one, PK_SIM_HERE) {                                       \
    return get<pk_sim_index_of<V, T...>()>(one, pk_sim_file, pk_sim_line);                    \
  }
PK_SIM_GET()
PK_SIM_GET(const)
#undef PK_SIM_GET

template <size_t I, class F, class V>
constexpr decltype(auto) pk_sim_visit(F &&call, V &&one) {
  if constexpr (I + 1 < variant_size_v<remove_cvref_t<V>>)
    if (one.index() != I) return pk_sim_visit<I + 1>(forward<F>(call), forward<V>(one));
  return call(get<I>(one));
}
template <class F, class V>
constexpr decltype(auto) visit(F &&call, V &&one) {
  return pk_sim_visit<0>(forward<F>(call), forward<V>(one));
}
template <class F, class V, class W, class... More>
constexpr decltype(auto) visit(F &&call, V &&one, W &&two, More &&...more) {
  return visit(
      [&](auto &value) -> decltype(auto) {
        return visit([&](auto &...others) -> decltype(auto) { return call(value, others...); }, two, more...);
      },
      one);
}
template <class... T>
bool operator==(const variant<T...> &a, const variant<T...> &b) {
  if (a.index() != b.index()) return false;
  return visit([&](const auto &one) { return one == *reinterpret_cast<decltype(&one)>(&b); }, a);
}

// ---- a value, or why there is none
template <class E>
class unexpected {
  E error_;

 public:
  constexpr explicit unexpected(const E &error) : error_(error) {}
  constexpr const E &error() const noexcept { return error_; }
};
template <class E>
unexpected(E) -> unexpected<E>;
template <class T, class E>
class expected {
  T value_{};
  E error_{};
  bool has_ = true;

 public:
  typedef T value_type;
  typedef E error_type;
  constexpr expected() = default;
  constexpr expected(const T &value) : value_(value) {}
  template <class G>
  constexpr expected(const unexpected<G> &why) : error_(why.error()), has_(false) {}
  constexpr bool has_value() const noexcept { return has_; }
  constexpr explicit operator bool() const noexcept { return has_; }
  constexpr T &operator*() { return value_; }
  constexpr const T &operator*() const { return value_; }
  constexpr T *operator->() { return &value_; }
  constexpr const T *operator->() const { return &value_; }
  T &value(PK_SIM_HERE) {
    if (!has_) __trap(pk_sim_file, pk_sim_line);
    return value_;
  }
  constexpr const E &error() const { return error_; }
  constexpr T value_or(const T &other) const { return has_ ? value_ : other; }
};

}  // namespace std
}  // namespace cuda
