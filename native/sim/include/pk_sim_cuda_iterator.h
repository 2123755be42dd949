// pk_sim_cuda_iterator.h: cuda::std's iterators.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_functions.h"

namespace cuda {
namespace std {

struct input_iterator_tag {};
struct output_iterator_tag {};
struct forward_iterator_tag : input_iterator_tag {};
struct bidirectional_iterator_tag : forward_iterator_tag {};
struct random_access_iterator_tag : bidirectional_iterator_tag {};
struct contiguous_iterator_tag : random_access_iterator_tag {};

template <class I>
struct iterator_traits {
  typedef typename I::value_type value_type;
  typedef typename I::difference_type difference_type;
  typedef typename I::reference reference;
  typedef typename I::pointer pointer;
  typedef typename I::iterator_category iterator_category;
};
template <class T>
struct iterator_traits<T *> {
  typedef remove_cv_t<T> value_type;
  typedef ptrdiff_t difference_type;
  typedef T &reference;
  typedef T *pointer;
  typedef random_access_iterator_tag iterator_category;
};
template <class I>
using iter_value_t = typename iterator_traits<I>::value_type;
template <class I>
using iter_difference_t = typename iterator_traits<I>::difference_type;
template <class I>
using iter_reference_t = decltype(*declval<I &>());

template <class I>
constexpr iter_difference_t<I> distance(I first, I last) {
  iter_difference_t<I> count = 0;
  if constexpr (is_convertible_v<typename iterator_traits<I>::iterator_category, random_access_iterator_tag>)
    count = last - first;
  else
    for (; first != last; ++first) ++count;
  return count;
}
template <class I, class N>
constexpr void advance(I &at, N count) {
  if constexpr (is_convertible_v<typename iterator_traits<I>::iterator_category, random_access_iterator_tag>) {
    at += count;
  } else {
    for (; count > 0; --count) ++at;
    if constexpr (is_convertible_v<typename iterator_traits<I>::iterator_category, bidirectional_iterator_tag>)
      for (; count < 0; ++count) --at;
  }
}
template <class I>
constexpr I next(I at, iter_difference_t<I> count = 1) {
  advance(at, count);
  return at;
}
template <class I>
constexpr I prev(I at, iter_difference_t<I> count = 1) {
  advance(at, -count);
  return at;
}
#define PK_SIM_RANGE(name, member, bare)          \
  template <class C>                              \
  constexpr auto name(C &all)->decltype(member) { \
    return member;                                \
  }                                               \
  template <class T, size_t N>                    \
  constexpr auto name(T(&all)[N]) {               \
    return bare;                                  \
  }
PK_SIM_RANGE(begin, all.begin(), all + 0)
PK_SIM_RANGE(end, all.end(), all + N)
PK_SIM_RANGE(data, all.data(), all + 0)
PK_SIM_RANGE(size, all.size(), N)
PK_SIM_RANGE(empty, all.empty(), N == 0)
#undef PK_SIM_RANGE
template <class C>
constexpr auto ssize(const C &all) {
  return (ptrdiff_t)size(all);
}

template <class I>
class reverse_iterator {
  I at_;

 public:
  typedef I iterator_type;
  typedef iter_value_t<I> value_type;
  typedef iter_difference_t<I> difference_type;
  typedef iter_reference_t<I> reference;
  typedef typename iterator_traits<I>::pointer pointer;
  typedef typename iterator_traits<I>::iterator_category iterator_category;
  constexpr reverse_iterator() : at_() {}
  constexpr explicit reverse_iterator(I at) : at_(at) {}
  constexpr I base() const { return at_; }
  constexpr reference operator*() const { return *prev(at_); }
  constexpr reference operator[](difference_type i) const { return at_[-i - 1]; }
  constexpr reverse_iterator &operator++() { return --at_, *this; }
  constexpr reverse_iterator &operator--() { return ++at_, *this; }
  constexpr reverse_iterator operator++(int) { return reverse_iterator(at_--); }
  constexpr reverse_iterator operator--(int) { return reverse_iterator(at_++); }
  constexpr reverse_iterator &operator+=(difference_type n) { return at_ -= n, *this; }
  constexpr reverse_iterator &operator-=(difference_type n) { return at_ += n, *this; }
  constexpr reverse_iterator operator+(difference_type n) const { return reverse_iterator(at_ - n); }
  constexpr reverse_iterator operator-(difference_type n) const { return reverse_iterator(at_ + n); }
  constexpr difference_type operator-(const reverse_iterator &other) const { return other.at_ - at_; }
  constexpr bool operator==(const reverse_iterator &other) const { return at_ == other.at_; }
  constexpr bool operator!=(const reverse_iterator &other) const { return at_ != other.at_; }
  constexpr bool operator<(const reverse_iterator &other) const { return other.at_ < at_; }
};
template <class I>
constexpr reverse_iterator<I> make_reverse_iterator(I at) {
  return reverse_iterator<I>(at);
}

}  // namespace std
}  // namespace cuda
