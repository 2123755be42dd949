// folds.h: what makes one value of many: reduce, count, extrema, comparisons, searches. Always in the same order.
#pragma once
#include "copies.h"

namespace thrust {

namespace pk_detail {
constexpr int fold_length = 16;  // elements that one thread folds

// Each number stands for fold_length elements; the first of all begins with `init`.
template <class In, class Value, class Function>
struct fold_work {
  In in;
  long long count;
  Value init;
  bool has_init;
  Value *out;
  Function function;
  PK_BOTH void operator()(long long tile) {
    long long i = tile * fold_length;
    const long long end = i + fold_length < count ? i + fold_length : count;
    Value all = tile == 0 && has_init ? Value(function(init, in[i])) : Value(in[i]);
    for (++i; i < end; ++i) all = function(all, in[i]);
    out[tile] = all;
  }
};
template <class In, class Less>
struct better_index {
  In in;
  Less less;
  bool largest;
  PK_BOTH long long operator()(long long a, long long b) {
    if (largest) return less(in[a], in[b]) ? b : a;
    return less(in[b], in[a]) ? b : a;
  }
};
template <class In, class Test>
struct index_if {
  In in;
  Test test;
  long long none;
  PK_BOTH long long operator()(long long i) { return test(in[i]) ? i : none; }
};
template <class In, class Test>
struct one_if {
  In in;
  Test test;
  PK_BOTH long long operator()(long long i) { return test(in[i]) ? 1 : 0; }
};
template <class In, class Other, class Function>
struct of_two {
  In in;
  Other other;
  Function function;
  PK_BOTH auto operator()(long long i) { return function(in[i], other[i]); }
};
template <class In, class Function>
struct of_one {
  In in;
  Function function;
  PK_BOTH auto operator()(long long i) { return function(in[i]); }
};
template <class Test>
struct negated {
  Test test;
  template <class... Values>
  PK_BOTH bool operator()(Values &&...values) {
    return !test(values...);
  }
};
// Yields function(i); what its type is only kernels need to know.
template <class Function>
struct computed {
  Function function;
  PK_BOTH auto operator[](long long i) { return function(i); }
};
template <class In, class Less>
struct falls {
  In in;
  Less less;
  PK_BOTH bool operator()(long long i) { return less(in[i + 1], in[i]); }
};
struct smaller {
  PK_BOTH long long operator()(long long a, long long b) { return b < a ? b : a; }
};
}  // namespace pk_detail

#ifndef __CUDA_ARCH__
namespace pk_detail {
// in: as kernels have it. Into `result`, which is init where there is nothing.
template <class Policy, class In, class Value, class Function>
void fold(const Policy &policy, In in, long long count, Value *result, bool has_init, Function function) {
  if (count <= 0) return;
  long long tiles = (count + fold_length - 1) / fold_length;
  memory<Policy, Value> first(tiles), second((tiles + fold_length - 1) / fold_length);
  run(policy, fold_work<In, Value, Function>{in, count, *result, has_init, first.get(), function}, tiles);
  Value *from = first.get(), *to = second.get();
  while (tiles > 1) {
    const long long next = (tiles + fold_length - 1) / fold_length;
    run(policy, fold_work<Value *, Value, Function>{from, tiles, *result, false, to, function}, next);
    std::swap(from, to);
    tiles = next;
  }
  fetch(policy, result, from, 1);
}
template <class Policy, class Function>
long long fold_indices(const Policy &policy, computed<Function> in, long long count, long long init) {
  fold(policy, in, count, &init, true, smaller());
  return init;
}
}  // namespace pk_detail

template <PK_POLICY, class In, class Value, class Function>
Value reduce(const Policy &policy, In first, In last, Value init, Function function) {
  pk_detail::fold(policy, pk_detail::raw(first), last - first, &init, true, function);
  return init;
}
template <PK_POLICY, class In, class Value>
Value reduce(const Policy &policy, In first, In last, Value init) {
  return thrust::reduce(policy, first, last, init, plus<>());
}
template <PK_POLICY, class In>
pk_detail::value_of<In> reduce(const Policy &policy, In first, In last) {
  return thrust::reduce(policy, first, last, pk_detail::value_of<In>());
}
PK_THRUST_WITHOUT_POLICY(reduce);
template <PK_POLICY, class In, class Unary, class Value, class Binary>
Value transform_reduce(const Policy &policy, In first, In last, Unary unary, Value init, Binary binary) {
  typedef pk_detail::of_one<pk_detail::raw_t<In>, Unary> Each;
  pk_detail::fold(policy, pk_detail::computed<Each>{Each{pk_detail::raw(first), unary}}, last - first, &init, true,
                  binary);
  return init;
}
PK_THRUST_WITHOUT_POLICY(transform_reduce);
template <PK_POLICY, class In, class Other, class Value, class Sum, class Product>
Value inner_product(const Policy &policy, In first, In last, Other other, Value init, Sum sum, Product product) {
  typedef pk_detail::of_two<pk_detail::raw_t<In>, pk_detail::raw_t<Other>, Product> Each;
  pk_detail::fold(policy, pk_detail::computed<Each>{Each{pk_detail::raw(first), pk_detail::raw(other), product}},
                  last - first, &init, true, sum);
  return init;
}
template <PK_POLICY, class In, class Other, class Value>
Value inner_product(const Policy &policy, In first, In last, Other other, Value init) {
  return thrust::inner_product(policy, first, last, other, init, plus<>(), multiplies<>());
}
PK_THRUST_WITHOUT_POLICY(inner_product);

template <PK_POLICY, class In, class Test>
long long count_if(const Policy &policy, In first, In last, Test test) {
  typedef pk_detail::one_if<pk_detail::raw_t<In>, Test> Each;
  long long all = 0;
  pk_detail::fold(policy, pk_detail::computed<Each>{Each{pk_detail::raw(first), test}}, last - first, &all, true,
                  plus<long long>());
  return all;
}
PK_THRUST_WITHOUT_POLICY(count_if);
template <PK_POLICY, class In, class Value>
long long count(const Policy &policy, In first, In last, const Value &value) {
  return thrust::count_if(policy, first, last, pk_detail::equals_value<Value>{value});
}
PK_THRUST_WITHOUT_POLICY(count);

namespace pk_detail {
template <class Policy, class In, class Less>
In best(const Policy &policy, In first, In last, Less less, bool largest) {
  long long found = 0;
  fold(policy, counting_iterator<long long>(0), last - first, &found, false,
       better_index<raw_t<In>, Less>{raw(first), less, largest});
  return first + found;
}
}  // namespace pk_detail
template <PK_POLICY, class In, class Less>
In min_element(const Policy &policy, In first, In last, Less less) {
  return pk_detail::best(policy, first, last, less, false);
}
template <PK_POLICY, class In>
In min_element(const Policy &policy, In first, In last) {
  return thrust::min_element(policy, first, last, less<>());
}
PK_THRUST_WITHOUT_POLICY(min_element);
template <PK_POLICY, class In, class Less>
In max_element(const Policy &policy, In first, In last, Less less) {
  return pk_detail::best(policy, first, last, less, true);
}
template <PK_POLICY, class In>
In max_element(const Policy &policy, In first, In last) {
  return thrust::max_element(policy, first, last, less<>());
}
PK_THRUST_WITHOUT_POLICY(max_element);
template <PK_POLICY, class In, class Less>
pair<In, In> minmax_element(const Policy &policy, In first, In last, Less less) {
  return pair<In, In>(thrust::min_element(policy, first, last, less), thrust::max_element(policy, first, last, less));
}
template <PK_POLICY, class In>
pair<In, In> minmax_element(const Policy &policy, In first, In last) {
  return thrust::minmax_element(policy, first, last, less<>());
}
PK_THRUST_WITHOUT_POLICY(minmax_element);

template <PK_POLICY, class In, class Test>
In find_if(const Policy &policy, In first, In last, Test test) {
  typedef pk_detail::index_if<pk_detail::raw_t<In>, Test> Each;
  const long long count = last - first;
  return first + pk_detail::fold_indices(policy, pk_detail::computed<Each>{Each{pk_detail::raw(first), test, count}},
                                         count, count);
}
PK_THRUST_WITHOUT_POLICY(find_if);
template <PK_POLICY, class In, class Test>
In find_if_not(const Policy &policy, In first, In last, Test test) {
  return thrust::find_if(policy, first, last, pk_detail::negated<Test>{test});
}
PK_THRUST_WITHOUT_POLICY(find_if_not);
template <PK_POLICY, class In, class Value>
In find(const Policy &policy, In first, In last, const Value &value) {
  return thrust::find_if(policy, first, last, pk_detail::equals_value<Value>{value});
}
PK_THRUST_WITHOUT_POLICY(find);
template <PK_POLICY, class In, class Test>
bool any_of(const Policy &policy, In first, In last, Test test) {
  return thrust::find_if(policy, first, last, test) != last;
}
PK_THRUST_WITHOUT_POLICY(any_of);
template <PK_POLICY, class In, class Test>
bool none_of(const Policy &policy, In first, In last, Test test) {
  return thrust::find_if(policy, first, last, test) == last;
}
PK_THRUST_WITHOUT_POLICY(none_of);
template <PK_POLICY, class In, class Test>
bool all_of(const Policy &policy, In first, In last, Test test) {
  return thrust::find_if_not(policy, first, last, test) == last;
}
PK_THRUST_WITHOUT_POLICY(all_of);

namespace pk_detail {
template <class Policy, class In, class Other, class Same>
long long first_difference(const Policy &policy, In first, In last, Other other, Same same) {
  typedef of_two<raw_t<In>, raw_t<Other>, negated<Same>> Differ;
  typedef index_if<computed<Differ>, identity<bool>> Each;
  const long long count = last - first;
  const computed<Differ> differ{Differ{raw(first), raw(other), negated<Same>{same}}};
  return fold_indices(policy, computed<Each>{Each{differ, identity<bool>(), count}}, count, count);
}
}  // namespace pk_detail
template <PK_POLICY, class In, class Other, class Same>
pair<In, Other> mismatch(const Policy &policy, In first, In last, Other other, Same same) {
  const long long at = pk_detail::first_difference(policy, first, last, other, same);
  return pair<In, Other>(first + at, other + at);
}
template <PK_POLICY, class In, class Other>
pair<In, Other> mismatch(const Policy &policy, In first, In last, Other other) {
  return thrust::mismatch(policy, first, last, other, equal_to<>());
}
PK_THRUST_WITHOUT_POLICY(mismatch);
template <PK_POLICY, class In, class Other, class Same>
bool equal(const Policy &policy, In first, In last, Other other, Same same) {
  return pk_detail::first_difference(policy, first, last, other, same) == last - first;
}
template <PK_POLICY, class In, class Other>
bool equal(const Policy &policy, In first, In last, Other other) {
  return thrust::equal(policy, first, last, other, equal_to<>());
}
PK_THRUST_WITHOUT_POLICY(equal);
template <PK_POLICY, class In, class Less>
In is_sorted_until(const Policy &policy, In first, In last, Less less) {
  if (last - first < 2) return last;
  const counting_iterator<long long> all(0);
  typedef pk_detail::falls<pk_detail::raw_t<In>, Less> Falls;
  return first + 1 + (thrust::find_if(policy, all, all + (last - first - 1), Falls{pk_detail::raw(first), less}) - all);
}
PK_THRUST_WITHOUT_POLICY(is_sorted_until);
template <PK_POLICY, class In, class Less>
bool is_sorted(const Policy &policy, In first, In last, Less less) {
  return thrust::is_sorted_until(policy, first, last, less) == last;
}
template <PK_POLICY, class In>
bool is_sorted(const Policy &policy, In first, In last) {
  return thrust::is_sorted(policy, first, last, less<>());
}
PK_THRUST_WITHOUT_POLICY(is_sorted);
#endif

}  // namespace thrust
