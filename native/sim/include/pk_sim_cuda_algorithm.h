// pk_sim_cuda_algorithm.h: cuda::std's algorithms on ranges.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_iterator.h"

namespace cuda {
namespace std {

// ---- what holds of elements
template <class I, class P>
constexpr I find_if(I first, I last, P holds) {
  while (first != last && !holds(*first)) ++first;
  return first;
}
template <class I, class P>
constexpr I find_if_not(I first, I last, P holds) {
  while (first != last && holds(*first)) ++first;
  return first;
}
template <class I, class T>
constexpr I find(I first, I last, const T &value) {
  while (first != last && !(*first == value)) ++first;
  return first;
}
template <class I, class P>
constexpr bool any_of(I first, I last, P holds) {
  return find_if(first, last, holds) != last;
}
template <class I, class P>
constexpr bool all_of(I first, I last, P holds) {
  return find_if_not(first, last, holds) == last;
}
template <class I, class P>
constexpr bool none_of(I first, I last, P holds) {
  return find_if(first, last, holds) == last;
}
template <class I, class P>
constexpr iter_difference_t<I> count_if(I first, I last, P holds) {
  iter_difference_t<I> found = 0;
  for (; first != last; ++first) found += holds(*first) ? 1 : 0;
  return found;
}
template <class I, class T>
constexpr iter_difference_t<I> count(I first, I last, const T &value) {
  iter_difference_t<I> found = 0;
  for (; first != last; ++first) found += *first == value ? 1 : 0;
  return found;
}
template <class I, class J, class P = equal_to<>>
constexpr bool equal(I first, I last, J other, P same = {}) {
  for (; first != last; ++first, ++other)
    if (!same(*first, *other)) return false;
  return true;
}
template <class I, class J, class L = less<>>
constexpr bool lexicographical_compare(I first, I last, J other, J other_last, L before = {}) {
  for (; first != last && other != other_last; ++first, ++other) {
    if (before(*first, *other)) return true;
    if (before(*other, *first)) return false;
  }
  return first == last && other != other_last;
}
template <class I, class F>
constexpr F for_each(I first, I last, F call) {
  for (; first != last; ++first) call(*first);
  return call;
}

// ---- elements from elements
template <class I, class O>
constexpr O copy(I first, I last, O to) {
  for (; first != last; ++first, ++to) *to = *first;
  return to;
}
template <class I, class N, class O>
constexpr O copy_n(I from, N count, O to) {
  for (N i = 0; i < count; ++i, ++from, ++to) *to = *from;
  return to;
}
template <class I, class O, class P>
constexpr O copy_if(I first, I last, O to, P holds) {
  for (; first != last; ++first)
    if (holds(*first)) *to = *first, ++to;
  return to;
}
template <class I, class T>
constexpr void fill(I first, I last, const T &value) {
  for (; first != last; ++first) *first = value;
}
template <class I, class N, class T>
constexpr I fill_n(I to, N count, const T &value) {
  for (N i = 0; i < count; ++i, ++to) *to = value;
  return to;
}
template <class I, class F>
constexpr void generate(I first, I last, F make) {
  for (; first != last; ++first) *first = make();
}
template <class I, class O, class F>
constexpr O transform(I first, I last, O to, F call) {
  for (; first != last; ++first, ++to) *to = call(*first);
  return to;
}
template <class I, class J, class O, class F>
constexpr O transform(I first, I last, J other, O to, F call) {
  for (; first != last; ++first, ++other, ++to) *to = call(*first, *other);
  return to;
}
template <class I, class T>
constexpr void replace(I first, I last, const T &old, const T &value) {
  for (; first != last; ++first)
    if (*first == old) *first = value;
}
template <class I, class P>
constexpr I remove_if(I first, I last, P holds) {
  I to = first;
  for (; first != last; ++first)
    if (!holds(*first)) *to = move(*first), ++to;
  return to;
}
template <class I, class T>
constexpr I remove(I first, I last, const T &value) {
  return remove_if(first, last, [&](const auto &one) { return one == value; });
}
template <class I, class P = equal_to<>>
constexpr I unique(I first, I last, P same = {}) {
  if (first == last) return last;
  I to = first;
  while (++first != last)
    if (!same(*to, *first)) *++to = move(*first);
  return ++to;
}
template <class I, class J>
constexpr void iter_swap(I a, J b) {
  swap(*a, *b);
}
template <class I, class J>
constexpr J swap_ranges(I first, I last, J other) {
  for (; first != last; ++first, ++other) iter_swap(first, other);
  return other;
}
template <class I>
constexpr void reverse(I first, I last) {
  while (first != last && first != --last) iter_swap(first++, last);
}
template <class I>
constexpr I rotate(I first, I middle, I last) {
  reverse(first, middle);
  reverse(middle, last);
  reverse(first, last);
  return next(first, distance(middle, last));
}
template <class I, class J, class O, class L = less<>>
constexpr O merge(I first, I last, J other, J other_last, O to, L before = {}) {
  for (; first != last; ++to) {
    if (other == other_last) return copy(first, last, to);
    const bool second = before(*other, *first);
    *to = second ? *other : *first;
    if (second)
      ++other;
    else
      ++first;
  }
  return copy(other, other_last, to);
}

// ---- order
template <class I, class L = less<>>
constexpr I min_element(I first, I last, L before = {}) {
  I found = first;
  for (; first != last; ++first)
    if (before(*first, *found)) found = first;
  return found;
}
template <class I, class L = less<>>
constexpr I max_element(I first, I last, L before = {}) {
  I found = first;
  for (; first != last; ++first)
    if (before(*found, *first)) found = first;
  return found;
}
template <class T>
constexpr T min(initializer_list<T> all) {
  return *min_element(all.begin(), all.end());
}
template <class T>
constexpr T max(initializer_list<T> all) {
  return *max_element(all.begin(), all.end());
}
template <class I, class P>
constexpr I partition_point(I first, I last, P holds) {
  auto count = distance(first, last);
  while (count > 0) {
    const auto half = count / 2;
    const I middle = next(first, half);
    if (holds(*middle)) {
      first = next(middle);
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}
template <class I, class T, class L = less<>>
constexpr I lower_bound(I first, I last, const T &value, L before = {}) {
  return partition_point(first, last, [&](const auto &one) { return before(one, value); });
}
template <class I, class T, class L = less<>>
constexpr I upper_bound(I first, I last, const T &value, L before = {}) {
  return partition_point(first, last, [&](const auto &one) { return !before(value, one); });
}
template <class I, class T, class L = less<>>
constexpr bool binary_search(I first, I last, const T &value, L before = {}) {
  first = lower_bound(first, last, value, before);
  return first != last && !before(value, *first);
}
template <class I, class L = less<>>
constexpr bool is_sorted(I first, I last, L before = {}) {
  for (I at = first; at != last; first = at, ++at)
    if (at != first && before(*at, *first)) return false;
  return true;
}

}  // namespace std
}  // namespace cuda
