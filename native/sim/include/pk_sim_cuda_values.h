// pk_sim_cuda_values.h: cuda::std's array, span, optional and complex.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_iterator.h"

namespace cuda {
namespace std {

template <class T, size_t N>
struct array {
  typedef T value_type;
  typedef T *iterator;
  typedef const T *const_iterator;
  T pk_sim_elements[N ? N : 1];
  static constexpr size_t size() noexcept { return N; }
  static constexpr bool empty() noexcept { return N == 0; }
  constexpr T &operator[](size_t i) { return pk_sim_elements[i]; }
  constexpr const T &operator[](size_t i) const { return pk_sim_elements[i]; }
  constexpr T &front() { return pk_sim_elements[0]; }
  constexpr const T &front() const { return pk_sim_elements[0]; }
  constexpr T &back() { return pk_sim_elements[N - 1]; }
  constexpr const T &back() const { return pk_sim_elements[N - 1]; }
  constexpr T *data() noexcept { return pk_sim_elements; }
  constexpr const T *data() const noexcept { return pk_sim_elements; }
  constexpr T *begin() noexcept { return pk_sim_elements; }
  constexpr const T *begin() const noexcept { return pk_sim_elements; }
  constexpr T *end() noexcept { return pk_sim_elements + N; }
  constexpr const T *end() const noexcept { return pk_sim_elements + N; }
  constexpr void fill(const T &value) {
    for (T &one : *this) one = value;
  }
  constexpr bool operator==(const array &other) const {
    for (size_t i = 0; i < N; ++i)
      if (!(pk_sim_elements[i] == other[i])) return false;
    return true;
  }
  constexpr bool operator!=(const array &other) const { return !(*this == other); }
};
template <class T, class... More>
array(T, More...) -> array<T, 1 + sizeof...(More)>;

inline constexpr size_t dynamic_extent = ~size_t(0);
template <class T, size_t Extent = dynamic_extent>
class span {
 public:
  typedef T element_type;
  typedef remove_cv_t<T> value_type;
  constexpr span() = default;
  constexpr span(T *first, size_t count) : first_(first), count_(count) {}
  constexpr span(T *first, T *last) : first_(first), count_(last - first) {}
  template <size_t N>
  constexpr span(T (&all)[N]) : first_(all), count_(N) {}
  template <class U, size_t N>
  constexpr span(array<U, N> &all) : first_(all.data()), count_(N) {}
  template <class U, size_t Other>
  constexpr span(const span<U, Other> &other) : first_(other.data()), count_(other.size()) {}
  constexpr size_t size() const noexcept { return count_; }
  constexpr size_t size_bytes() const noexcept { return count_ * sizeof(T); }
  constexpr bool empty() const noexcept { return count_ == 0; }
  constexpr T *data() const noexcept { return first_; }
  constexpr T &operator[](size_t i) const { return first_[i]; }
  constexpr T &front() const { return first_[0]; }
  constexpr T &back() const { return first_[count_ - 1]; }
  constexpr T *begin() const noexcept { return first_; }
  constexpr T *end() const noexcept { return first_ + count_; }
  constexpr span<T> first(size_t count) const { return {first_, count}; }
  constexpr span<T> last(size_t count) const { return {first_ + count_ - count, count}; }
  constexpr span<T> subspan(size_t offset, size_t count = dynamic_extent) const {
    return {first_ + offset, count == dynamic_extent ? count_ - offset : count};
  }

 private:
  T *first_ = nullptr;
  size_t count_ = Extent == dynamic_extent ? 0 : Extent;
};

struct nullopt_t {};
inline constexpr nullopt_t nullopt{};
template <class T>
class optional {
 public:
  typedef T value_type;
  constexpr optional(nullopt_t = nullopt) {}
  constexpr optional(const T &value) : value_(value), has_(true) {}
  constexpr bool has_value() const noexcept { return has_; }
  constexpr explicit operator bool() const noexcept { return has_; }
  constexpr T &value() { return value_; }
  constexpr const T &value() const { return value_; }
  constexpr T &operator*() { return value_; }
  constexpr const T &operator*() const { return value_; }
  constexpr T *operator->() { return &value_; }
  constexpr const T *operator->() const { return &value_; }
  constexpr T value_or(const T &other) const { return has_ ? value_ : other; }
  constexpr void reset() { has_ = false; }
  template <class... A>
  constexpr T &emplace(A &&...arguments) {
    has_ = true;
    return value_ = T(forward<A>(arguments)...);
  }
  constexpr bool operator==(const optional &other) const {
    return has_ == other.has_ && (!has_ || value_ == other.value_);
  }
  constexpr bool operator!=(const optional &other) const { return !(*this == other); }

 private:
  T value_{};
  bool has_ = false;
};

template <class T>
class complex {
 public:
  typedef T value_type;
  constexpr complex(T real = T(), T imaginary = T()) : real_(real), imaginary_(imaginary) {}
  constexpr T real() const { return real_; }
  constexpr T imag() const { return imaginary_; }
  constexpr void real(T value) { real_ = value; }
  constexpr void imag(T value) { imaginary_ = value; }
  constexpr complex &operator+=(const complex &b) { return *this = *this + b; }
  constexpr complex &operator-=(const complex &b) { return *this = *this - b; }
  constexpr complex &operator*=(const complex &b) { return *this = *this * b; }
  constexpr complex &operator/=(const complex &b) { return *this = *this / b; }
  friend constexpr complex operator+(const complex &a, const complex &b) {
    return {a.real_ + b.real_, a.imaginary_ + b.imaginary_};
  }
  friend constexpr complex operator-(const complex &a, const complex &b) {
    return {a.real_ - b.real_, a.imaginary_ - b.imaginary_};
  }
  friend constexpr complex operator-(const complex &a) { return {-a.real_, -a.imaginary_}; }
  friend constexpr complex operator*(const complex &a, const complex &b) {
    return {a.real_ * b.real_ - a.imaginary_ * b.imaginary_, a.real_ * b.imaginary_ + a.imaginary_ * b.real_};
  }
  friend constexpr complex operator/(const complex &a, const complex &b) {
    const T size = b.real_ * b.real_ + b.imaginary_ * b.imaginary_;
    return {(a.real_ * b.real_ + a.imaginary_ * b.imaginary_) / size,
            (a.imaginary_ * b.real_ - a.real_ * b.imaginary_) / size};
  }
  friend constexpr bool operator==(const complex &a, const complex &b) {
    return a.real_ == b.real_ && a.imaginary_ == b.imaginary_;
  }

 private:
  T real_, imaginary_;
};
template <class T>
constexpr T real(const complex<T> &z) {
  return z.real();
}
template <class T>
constexpr T imag(const complex<T> &z) {
  return z.imag();
}
template <class T>
constexpr T norm(const complex<T> &z) {
  return z.real() * z.real() + z.imag() * z.imag();
}
template <class T>
constexpr complex<T> conj(const complex<T> &z) {
  return {z.real(), -z.imag()};
}
using pk_sim_library::abs;
using pk_sim_library::exp;
template <class T>
T abs(const complex<T> &z) {
  return pk_sim_library::hypot(z.real(), z.imag());
}
template <class T>
T arg(const complex<T> &z) {
  return pk_sim_library::atan2(z.imag(), z.real());
}
template <class T>
complex<T> exp(const complex<T> &z) {
  const T size = pk_sim_library::exp(z.real());
  return {size * pk_sim_library::cos(z.imag()), size * pk_sim_library::sin(z.imag())};
}
template <class T>
complex<T> polar(const T &size, const T &angle = T()) {
  return {size * pk_sim_library::cos(angle), size * pk_sim_library::sin(angle)};
}

}  // namespace std
}  // namespace cuda
