// pk_sim_cuda_containers.h: cuda::std's bitset and inplace_vector.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_iterator.h"

namespace cuda {
namespace std {

template <size_t N>
class bitset {
  static constexpr size_t words = N ? (N + 63) / 64 : 1;
  unsigned long long words_[words] = {};
  constexpr void trim() {
    if (N % 64) words_[words - 1] &= (1ull << N % 64) - 1;
  }

 public:
  class reference {
    bitset *all_;
    size_t at_;

   public:
    constexpr reference(bitset *all, size_t at) : all_(all), at_(at) {}
    constexpr reference &operator=(bool value) { return all_->set(at_, value), *this; }
    constexpr operator bool() const { return all_->test(at_); }
  };
  constexpr bitset() = default;
  constexpr bitset(unsigned long long bits) {
    words_[0] = bits;
    trim();
  }
  static constexpr size_t size() noexcept { return N; }
  constexpr bool test(size_t i) const { return words_[i / 64] >> i % 64 & 1; }
  constexpr bool operator[](size_t i) const { return test(i); }
  constexpr reference operator[](size_t i) { return {this, i}; }
  constexpr bitset &set(size_t i, bool value = true) {
    const unsigned long long bit = 1ull << i % 64;
    words_[i / 64] = value ? words_[i / 64] | bit : words_[i / 64] & ~bit;
    return *this;
  }
  constexpr bitset &reset(size_t i) { return set(i, false); }
  constexpr bitset &flip(size_t i) { return set(i, !test(i)); }
  constexpr bitset &set() { return *this = ~bitset(); }
  constexpr bitset &reset() { return *this = bitset(); }
  constexpr bitset &flip() { return *this = ~*this; }
  constexpr size_t count() const {
    size_t found = 0;
    for (unsigned long long word : words_) found += __builtin_popcountll(word);
    return found;
  }
  constexpr bool any() const { return count() != 0; }
  constexpr bool none() const { return count() == 0; }
  constexpr bool all() const { return count() == N; }
  constexpr unsigned long to_ulong() const { return words_[0]; }
  constexpr unsigned long long to_ullong() const { return words_[0]; }
#define PK_SIM_BITS(sign)                                              \
  constexpr bitset &operator sign##=(const bitset &b) {                \
    for (size_t i = 0; i < words; ++i) words_[i] sign## = b.words_[i]; \
    return *this;                                                      \
  }                                                                    \
  friend constexpr bitset operator sign(bitset a, const bitset &b) { return a sign## = b; }
  PK_SIM_BITS(&)
  PK_SIM_BITS(|)
  PK_SIM_BITS(^)
#undef PK_SIM_BITS
  constexpr bitset operator~() const {
    bitset turned;
    for (size_t i = 0; i < words; ++i) turned.words_[i] = ~words_[i];
    turned.trim();
    return turned;
  }
  constexpr bitset operator<<(size_t n) const {
    bitset moved;
    for (size_t i = n; i < N; ++i) moved.set(i, test(i - n));
    return moved;
  }
  constexpr bitset operator>>(size_t n) const {
    bitset moved;
    for (size_t i = n; i < N; ++i) moved.set(i - n, test(i));
    return moved;
  }
  constexpr bool operator==(const bitset &b) const { return (*this ^ b).none(); }
  constexpr bool operator!=(const bitset &b) const { return !(*this == b); }
};

template <class T, size_t N>
class inplace_vector {
  T elements_[N ? N : 1];
  size_t count_ = 0;

 public:
  typedef T value_type;
  typedef T *iterator;
  typedef const T *const_iterator;
  constexpr inplace_vector() = default;
  constexpr explicit inplace_vector(size_t count, const T &value = T()) { resize(count, value); }
  static constexpr size_t capacity() noexcept { return N; }
  static constexpr size_t max_size() noexcept { return N; }
  constexpr size_t size() const noexcept { return count_; }
  constexpr bool empty() const noexcept { return count_ == 0; }
  constexpr T *data() noexcept { return elements_; }
  constexpr const T *data() const noexcept { return elements_; }
  constexpr T *begin() noexcept { return elements_; }
  constexpr const T *begin() const noexcept { return elements_; }
  constexpr T *end() noexcept { return elements_ + count_; }
  constexpr const T *end() const noexcept { return elements_ + count_; }
  constexpr T &operator[](size_t i) { return elements_[i]; }
  constexpr const T &operator[](size_t i) const { return elements_[i]; }
  constexpr T &front() { return elements_[0]; }
  constexpr T &back() { return elements_[count_ - 1]; }
  // Null when there is no room.
  constexpr T *try_push_back(const T &value) {
    if (count_ == N) return nullptr;
    elements_[count_] = value;
    return &elements_[count_++];
  }
  T &push_back(const T &value, PK_SIM_HERE) {
    T *const place = try_push_back(value);
    if (!place) __trap(pk_sim_file, pk_sim_line);
    return *place;
  }
  template <class... A>
  T &emplace_back(A &&...arguments) {
    return push_back(T(forward<A>(arguments)...));
  }
  constexpr void pop_back() { --count_; }
  constexpr void clear() { count_ = 0; }
  void resize(size_t count, const T &value = T(), PK_SIM_HERE) {
    while (count_ > count) pop_back();
    while (count_ < count) push_back(value, pk_sim_file, pk_sim_line);
  }
};

}  // namespace std
}  // namespace cuda
