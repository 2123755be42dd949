// sorts.h: sorting by merges, always stable; searches in what is sorted; merges and sets.
#pragma once
#include "scans.h"

namespace thrust {

namespace pk_detail {
constexpr int sort_length = 16;  // elements that one thread sorts, and that it merges

template <class Value, class Less>
struct sort_work {
  Value *values;
  long long count;
  Less less;
  PK_BOTH void operator()(long long tile) {
    const long long begin = tile * sort_length, end = begin + sort_length < count ? begin + sort_length : count;
    for (long long i = begin + 1; i < end; ++i) {
      const Value value = values[i];
      long long at = i;
      for (; at > begin && less(value, values[at - 1]); --at) values[at] = values[at - 1];
      values[at] = value;
    }
  }
};
// Where the first `ranks` of two sorted ranges end in the first of them; of equals, that one's come first.
template <class One, class Two, class Less>
PK_BOTH long long merge_path(One &one, long long ones, Two &two, long long twos, long long ranks, Less &less) {
  long long low = ranks > twos ? ranks - twos : 0, high = ranks < ones ? ranks : ones;
  while (low < high) {
    const long long middle = low + (high - low) / 2;
    if (less(two[ranks - 1 - middle], one[middle]))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}
template <class One, class Two, class Out, class Less>
PK_BOTH void merge_part(One &one, long long ones, Two &two, long long twos, Out &out, long long begin, long long end,
                        Less &less) {
  long long a = merge_path(one, ones, two, twos, begin, less), b = begin - a;
  for (long long i = begin; i < end; ++i) {
    if (b >= twos || (a < ones && !less(two[b], one[a])))
      out[i] = one[a++];
    else
      out[i] = two[b++];
  }
}
// Pairs of sorted runs of `run` elements to runs of twice as many.
template <class Value, class Less>
struct merge_runs {
  Value *in, *out;
  long long count, run;
  Less less;
  PK_BOTH void operator()(long long tile) {
    const long long begin = tile * sort_length, end = begin + sort_length < count ? begin + sort_length : count;
    const long long first = begin / (2 * run) * (2 * run);
    const long long ones = first + run < count ? run : count - first;
    const long long rest = count - first - ones, twos = rest < run ? rest : run;
    Value *one = in + first, *two = in + first + ones, *to = out + first;
    merge_part(one, ones, two, twos, to, begin - first, end - first, less);
  }
};
template <class One, class Two, class Out, class Less>
struct merge_work {
  One one;
  Two two;
  Out out;
  long long ones, twos;
  Less less;
  PK_BOTH void operator()(long long tile) {
    const long long count = ones + twos, begin = tile * sort_length;
    merge_part(one, ones, two, twos, out, begin, begin + sort_length < count ? begin + sort_length : count, less);
  }
};
template <class Key, class Value>
struct keyed {
  Key key;
  Value value;
};
template <class Key, class Value, class Less>
struct by_key {
  Less less;
  PK_BOTH bool operator()(const keyed<Key, Value> &a, const keyed<Key, Value> &b) { return less(a.key, b.key); }
};
template <class Keys, class Values, class Key, class Value>
struct join_work {
  Keys keys;
  Values values;
  keyed<Key, Value> *out;
  PK_BOTH void operator()(long long i) {
    out[i].key = keys[i];
    out[i].value = values[i];
  }
};
template <class Keys, class Values, class Key, class Value>
struct part_work {
  const keyed<Key, Value> *in;
  Keys keys;
  Values values;
  PK_BOTH void operator()(long long i) {
    keys[i] = in[i].key;
    values[i] = in[i].value;
  }
};
// How many of a sorted range stand before a value: `upper` counts its equals.
template <class In, class Less>
struct place_of {
  In in;
  long long count;
  Less less;
  bool upper;
  template <class Value>
  PK_BOTH long long operator()(const Value &value) {
    long long low = 0, high = count;
    while (low < high) {
      const long long middle = low + (high - low) / 2;
      if (upper ? !less(value, in[middle]) : less(in[middle], value))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};
template <class In, class Less>
struct is_in {
  place_of<In, Less> place;
  template <class Value>
  PK_BOTH bool operator()(const Value &value) {
    const long long at = place(value);
    return at < place.count && !place.less(value, place.in[at]);
  }
};
// Element i of one is in two as well, counting equals: with k equals before it in one, two has more than k.
template <class One, class Two, class Less>
struct in_both {
  One one;
  Two two;
  long long ones, twos;
  Less less;
  bool wanted;
  PK_BOTH bool operator()(long long i) {
    place_of<One, Less> own{one, ones, less, false};
    place_of<Two, Less> first{two, twos, less, false}, last{two, twos, less, true};
    return (i - own(one[i]) < last(one[i]) - first(one[i])) == wanted;
  }
};
}  // namespace pk_detail

#ifndef __CUDA_ARCH__
namespace pk_detail {
// Sorts memory of its own: the result is in one of the two.
template <class Policy, class Value, class Less>
Value *sorted(const Policy &policy, Value *values, Value *other, long long count, Less less) {
  const long long tiles = (count + sort_length - 1) / sort_length;
  run(policy, sort_work<Value, Less>{values, count, less}, tiles);
  for (long long length = sort_length; length < count; length *= 2) {
    run(policy, merge_runs<Value, Less>{values, other, count, length, less}, tiles);
    std::swap(values, other);
  }
  return values;
}
}  // namespace pk_detail

template <PK_POLICY, class It, class Less>
void stable_sort(const Policy &policy, It first, It last, Less less) {
  typedef pk_detail::value_of<It> Value;
  const long long count = last - first;
  if (count < 2) return;
  pk_detail::memory<Policy, Value> one(count), two(count);
  pk_detail::run(policy, pk_detail::copy_work<pk_detail::raw_t<It>, Value *>{pk_detail::raw(first), one.get()}, count);
  Value *result = pk_detail::sorted(policy, one.get(), two.get(), count, less);
  pk_detail::run(policy, pk_detail::copy_work<Value *, pk_detail::raw_t<It>>{result, pk_detail::raw(first)}, count);
  pk_detail::wait(policy);
}
template <PK_POLICY, class It>
void stable_sort(const Policy &policy, It first, It last) {
  thrust::stable_sort(policy, first, last, less<>());
}
PK_THRUST_WITHOUT_POLICY(stable_sort);
template <PK_POLICY, class It, class Less>
void sort(const Policy &policy, It first, It last, Less less) {
  thrust::stable_sort(policy, first, last, less);
}
template <PK_POLICY, class It>
void sort(const Policy &policy, It first, It last) {
  thrust::stable_sort(policy, first, last, less<>());
}
PK_THRUST_WITHOUT_POLICY(sort);
template <PK_POLICY, class Keys, class Values, class Less>
void stable_sort_by_key(const Policy &policy, Keys first, Keys last, Values values, Less less) {
  typedef pk_detail::value_of<Keys> Key;
  typedef pk_detail::value_of<Values> Value;
  typedef pk_detail::keyed<Key, Value> Pair;
  typedef pk_detail::raw_t<Keys> RawKeys;
  typedef pk_detail::raw_t<Values> RawValues;
  const long long count = last - first;
  if (count < 2) return;
  pk_detail::memory<Policy, Pair> one(count), two(count);
  pk_detail::run(
      policy,
      pk_detail::join_work<RawKeys, RawValues, Key, Value>{pk_detail::raw(first), pk_detail::raw(values), one.get()},
      count);
  const Pair *result =
      pk_detail::sorted(policy, one.get(), two.get(), count, pk_detail::by_key<Key, Value, Less>{less});
  pk_detail::run(
      policy,
      pk_detail::part_work<RawKeys, RawValues, Key, Value>{result, pk_detail::raw(first), pk_detail::raw(values)},
      count);
  pk_detail::wait(policy);
}
template <PK_POLICY, class Keys, class Values>
void stable_sort_by_key(const Policy &policy, Keys first, Keys last, Values values) {
  thrust::stable_sort_by_key(policy, first, last, values, less<>());
}
PK_THRUST_WITHOUT_POLICY(stable_sort_by_key);
template <PK_POLICY, class Keys, class Values, class Less>
void sort_by_key(const Policy &policy, Keys first, Keys last, Values values, Less less) {
  thrust::stable_sort_by_key(policy, first, last, values, less);
}
template <PK_POLICY, class Keys, class Values>
void sort_by_key(const Policy &policy, Keys first, Keys last, Values values) {
  thrust::stable_sort_by_key(policy, first, last, values, less<>());
}
PK_THRUST_WITHOUT_POLICY(sort_by_key);

template <PK_POLICY, class One, class Two, class Out, class Less>
Out merge(const Policy &policy, One first, One last, Two begin, Two end, Out out, Less less) {
  const long long ones = last - first, twos = end - begin, count = ones + twos;
  pk_detail::run(policy,
                 pk_detail::merge_work<pk_detail::raw_t<One>, pk_detail::raw_t<Two>, pk_detail::raw_t<Out>, Less>{
                     pk_detail::raw(first), pk_detail::raw(begin), pk_detail::raw(out), ones, twos, less},
                 (count + pk_detail::sort_length - 1) / pk_detail::sort_length);
  pk_detail::wait(policy);
  return out + count;
}
template <PK_POLICY, class One, class Two, class Out>
Out merge(const Policy &policy, One first, One last, Two begin, Two end, Out out) {
  return thrust::merge(policy, first, last, begin, end, out, less<>());
}
PK_THRUST_WITHOUT_POLICY(merge);

// ---- searches: of many values, and of one
#define PK_THRUST_BOUND(name, is_upper)                                                                        \
  template <PK_POLICY, class In, class Values, class Out, class Less>                                          \
  Out name(const Policy &policy, In first, In last, Values begin, Values end, Out out, Less less) {            \
    return thrust::transform(                                                                                  \
        policy, begin, end, out,                                                                               \
        pk_detail::place_of<pk_detail::raw_t<In>, Less>{pk_detail::raw(first), last - first, less, is_upper}); \
  }                                                                                                            \
  template <PK_POLICY, class In, class Values, class Out,                                                      \
            std::enable_if_t<pk_detail::system_of<Out>::value != pk_detail::NO_SYSTEM, int> = 0>               \
  Out name(const Policy &policy, In first, In last, Values begin, Values end, Out out) {                       \
    return thrust::name(policy, first, last, begin, end, out, less<>());                                       \
  }                                                                                                            \
  template <PK_POLICY, class In, class Value, class Less>                                                      \
  In name(const Policy &policy, In first, In last, const Value &value, Less less) {                            \
    pk_detail::memory<Policy, long long> place(1);                                                             \
    const constant_iterator<Value> one(value);                                                                 \
    long long found = 0;                                                                                       \
    thrust::name(policy, first, last, one, one + 1, place.get(), less);                                        \
    pk_detail::fetch(policy, &found, place.get(), 1);                                                          \
    return first + found;                                                                                      \
  }                                                                                                            \
  template <PK_POLICY, class In, class Value>                                                                  \
  In name(const Policy &policy, In first, In last, const Value &value) {                                       \
    return thrust::name(policy, first, last, value, less<>());                                                 \
  }                                                                                                            \
  PK_THRUST_WITHOUT_POLICY(name)
PK_THRUST_BOUND(lower_bound, false);
PK_THRUST_BOUND(upper_bound, true);
template <PK_POLICY, class In, class Values, class Out>
Out binary_search(const Policy &policy, In first, In last, Values begin, Values end, Out out) {
  typedef pk_detail::place_of<pk_detail::raw_t<In>, less<>> Place;
  return thrust::transform(
      policy, begin, end, out,
      pk_detail::is_in<pk_detail::raw_t<In>, less<>>{Place{pk_detail::raw(first), last - first, {}, false}});
}
template <PK_POLICY, class In, class Value>
bool binary_search(const Policy &policy, In first, In last, const Value &value) {
  return thrust::lower_bound(policy, first, last, value) != thrust::upper_bound(policy, first, last, value);
}
PK_THRUST_WITHOUT_POLICY(binary_search);
template <PK_POLICY, class In, class Value>
pair<In, In> equal_range(const Policy &policy, In first, In last, const Value &value) {
  return pair<In, In>(thrust::lower_bound(policy, first, last, value), thrust::upper_bound(policy, first, last, value));
}
PK_THRUST_WITHOUT_POLICY(equal_range);

// ---- sets
namespace pk_detail {
template <class Policy, class One, class Two, class Out, class Less>
Out set_part(const Policy &policy, One first, One last, Two begin, Two end, Out out, Less less, bool wanted) {
  typedef in_both<raw_t<One>, raw_t<Two>, Less> Test;
  return thrust::copy_if(policy, first, last, counting_iterator<long long>(0), out,
                         Test{raw(first), raw(begin), last - first, end - begin, less, wanted});
}
}  // namespace pk_detail
template <PK_POLICY, class One, class Two, class Out, class Less>
Out set_intersection(const Policy &policy, One first, One last, Two begin, Two end, Out out, Less less) {
  return pk_detail::set_part(policy, first, last, begin, end, out, less, true);
}
template <PK_POLICY, class One, class Two, class Out>
Out set_intersection(const Policy &policy, One first, One last, Two begin, Two end, Out out) {
  return pk_detail::set_part(policy, first, last, begin, end, out, less<>(), true);
}
PK_THRUST_WITHOUT_POLICY(set_intersection);
template <PK_POLICY, class One, class Two, class Out, class Less>
Out set_difference(const Policy &policy, One first, One last, Two begin, Two end, Out out, Less less) {
  return pk_detail::set_part(policy, first, last, begin, end, out, less, false);
}
template <PK_POLICY, class One, class Two, class Out>
Out set_difference(const Policy &policy, One first, One last, Two begin, Two end, Out out) {
  return pk_detail::set_part(policy, first, last, begin, end, out, less<>(), false);
}
PK_THRUST_WITHOUT_POLICY(set_difference);
template <PK_POLICY, class One, class Two, class Out, class Less>
Out set_union(const Policy &policy, One first, One last, Two begin, Two end, Out out, Less less) {
  typedef pk_detail::value_of<Two> Value;
  pk_detail::memory<Policy, Value> added(end - begin > 0 ? end - begin : 1);
  Value *const past = pk_detail::set_part(policy, begin, end, first, last, added.get(), less, false);
  return thrust::merge(policy, first, last, added.get(), past, out, less);
}
template <PK_POLICY, class One, class Two, class Out>
Out set_union(const Policy &policy, One first, One last, Two begin, Two end, Out out) {
  return thrust::set_union(policy, first, last, begin, end, out, less<>());
}
PK_THRUST_WITHOUT_POLICY(set_union);
#endif

}  // namespace thrust
