// pk_sim_std.h: the C and C++ names that NVRTC has before any #include.
#pragma once
#pragma GCC system_header

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long clock_t;
typedef __builtin_va_list va_list;
#define NULL __null

template <class T>
struct pk_sim_unreferenced {
  typedef T type;
};
template <class T>
struct pk_sim_unreferenced<T &> : pk_sim_unreferenced<T> {};
template <class T>
struct pk_sim_unreferenced<T &&> : pk_sim_unreferenced<T> {};

namespace std {
template <class T>
constexpr typename pk_sim_unreferenced<T>::type &&move(T &&value) noexcept {
  return static_cast<typename pk_sim_unreferenced<T>::type &&>(value);
}
template <class T>
constexpr T &&forward(typename pk_sim_unreferenced<T>::type &value) noexcept {
  return static_cast<T &&>(value);
}
template <class T>
constexpr T &&forward(typename pk_sim_unreferenced<T>::type &&value) noexcept {
  return static_cast<T &&>(value);
}
// As a compiler fills it in: where the elements are, and how many.
template <class T>
class initializer_list {
 public:
  typedef T value_type;
  typedef const T &reference;
  typedef const T &const_reference;
  typedef size_t size_type;
  typedef const T *iterator;
  typedef const T *const_iterator;
  constexpr initializer_list() noexcept : first_(nullptr), count_(0) {}
  constexpr size_t size() const noexcept { return count_; }
  constexpr const T *begin() const noexcept { return first_; }
  constexpr const T *end() const noexcept { return first_ + count_; }

 private:
  constexpr initializer_list(const T *first, size_t count) : first_(first), count_(count) {}
  const T *first_;
  size_t count_;
};
// What a structured binding asks for.
template <class T>
struct tuple_size;
// A const one of what has no size has none either: the compiler asks for it before it binds a plain struct's members.
template <class T, size_t = tuple_size<T>::value>
using pk_sim_sized = T;
template <class T>
struct tuple_size<const pk_sim_sized<T>> : tuple_size<T> {};
template <size_t I, class T>
struct tuple_element;
template <size_t I, class T>
struct tuple_element<I, const T> {
  typedef const typename tuple_element<I, T>::type type;
};
template <class T>
constexpr const T *begin(initializer_list<T> list) noexcept {
  return list.begin();
}
template <class T>
constexpr const T *end(initializer_list<T> list) noexcept {
  return list.end();
}
}  // namespace std
