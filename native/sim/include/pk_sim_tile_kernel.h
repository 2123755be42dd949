// pk_sim_tile_kernel.h: where a block stands, ranges to walk, and what a kernel takes for granted, which is checked
// here.
#pragma once
#pragma GCC system_header

namespace cuda::tiles {

inline uint3 bid() noexcept { return blockIdx; }
inline dim3 num_blocks() noexcept { return dim3(gridDim.x, gridDim.y, gridDim.z); }

template <class T>
struct irange_iterator {
  T current, step;
  constexpr T operator*() const noexcept { return current; }
  constexpr irange_iterator &operator++() noexcept {
    current += step;
    return *this;
  }
  constexpr bool operator==(T end) const noexcept { return current >= end; }
  constexpr bool operator!=(T end) const noexcept { return current < end; }
};
template <class T>
struct irange {
  static_assert(sim::is_integer<T>, "ct::irange counts in integers");
  using iterator = irange_iterator<T>;
  constexpr irange(T first, T end, T step = 1) noexcept : first_(first), end_(end), step_(step) {}
  constexpr iterator begin() const noexcept { return {first_, step_}; }
  constexpr T end() const noexcept { return end_; }
  constexpr bool empty() const noexcept { return first_ >= end_; }
  constexpr T size() const noexcept { return empty() ? T(0) : T((end_ - first_ - 1) / step_ + 1); }
  constexpr T lower_bound() const noexcept { return first_; }
  constexpr T upper_bound() const noexcept { return end_; }
  constexpr T step() const noexcept { return step_; }

 private:
  T first_, end_, step_;
};
template <class A, class B>
irange(A, B) -> irange<typename sim::together<sim::element<A>, sim::element<B>>::type>;
template <class A, class B, class C>
irange(A, B, C) -> irange<
    typename sim::together<typename sim::together<sim::element<A>, sim::element<B>>::type, sim::element<C>>::type>;

namespace sim {
// Through vsnprintf, which is the one function of stdio that refused.cpp allows.
__attribute__((__format__(__printf__, 3, 4))) PK_SIM_NOINLINE void write_text(char *text, size_t bytes,
                                                                              const char *format, ...) {
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  __builtin_vsnprintf(text, bytes, format, arguments);
  __builtin_va_end(arguments);
}
[[noreturn]] __attribute__((__format__(__printf__, 3, 4))) PK_SIM_NOINLINE void refuse(const char *file, int line,
                                                                                       const char *format, ...) {
  static char text[200];
  __builtin_va_list arguments;
  __builtin_va_start(arguments, format);
  __builtin_vsnprintf(text, sizeof text, format, arguments);
  __builtin_va_end(arguments);
  pk_sim_fail(PK_SIM_FAIL_TRAP, text, "", file, line);
}
// The first element that a test refuses, null where none is.
template <class T, class F>
PK_SIM_TILE_LOOP const element<T> *first_bad(const element<T> *at, F good) {
  for (size_t i = 0; i < size_of<shape_of<T>>; ++i)
    if (!good(at[i])) return at + i;
  return nullptr;
}
template <class T, class F, class Told>
T assumed(const T &value, F good, Told told) {
  const operand<shape_of<T>, T> all(value);
  if (const element<T> *const bad = first_bad<T>(all.at(), good)) told(*bad);
  return value;
}
}  // namespace sim

template <auto Divisor, integral_tile T>
[[nodiscard]] T assume_divisible(T value, integral_constant<Divisor> = {}, PK_SIM_HERE) noexcept {
  using E = sim::element<T>;
  return sim::assumed(
      value, [](E each) { return each % (E)Divisor == 0; },
      [&](E each) {
        sim::refuse(pk_sim_file, pk_sim_line, "ct::assume_divisible<%lld>: the kernel was given %lld,",
                    (long long)Divisor, (long long)each);
      });
}
template <auto Alignment, pointer_tile T>
[[nodiscard]] T assume_aligned(T value, integral_constant<Alignment> = {}, PK_SIM_HERE) noexcept {
  using E = sim::element<T>;
  return sim::assumed(
      value, [](E each) { return (size_t)each % Alignment == 0; },
      [&](E each) {
        sim::refuse(pk_sim_file, pk_sim_line, "ct::assume_aligned<%lld>: the kernel was given the address %p,",
                    (long long)Alignment, (const void *)each);
      });
}
template <auto Low, auto High, integral_tile T>
[[nodiscard]] T assume_bounded(T value, integral_constant<Low> = {}, integral_constant<High> = {},
                               PK_SIM_HERE) noexcept {
  using E = sim::element<T>;
  return sim::assumed(
      value, [](E each) { return (long long)each >= (long long)Low && (long long)each <= (long long)High; },
      [&](E each) {
        sim::refuse(pk_sim_file, pk_sim_line, "ct::assume_bounded<%lld, %lld>: the kernel was given %lld,",
                    (long long)Low, (long long)High, (long long)each);
      });
}
template <auto High, integral_tile T>
[[nodiscard]] T assume_bounded_above(T value, integral_constant<High> = {}, PK_SIM_HERE) noexcept {
  return assume_bounded<(long long)(~0ull / 2 + 1), High>(value, {}, {}, pk_sim_file, pk_sim_line);
}
template <auto Low, integral_tile T>
[[nodiscard]] T assume_bounded_below(T value, integral_constant<Low> = {}, PK_SIM_HERE) noexcept {
  return assume_bounded<Low, (long long)(~0ull / 2)>(value, {}, {}, pk_sim_file, pk_sim_line);
}

}  // namespace cuda::tiles
