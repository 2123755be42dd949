// scans.h: running results, and what they decide the place of: selections, partitions, runs of equal keys.
#pragma once
#include "folds.h"

namespace thrust {

namespace pk_detail {
// Each number stands for fold_length elements; before[tile - 1] is the result of all that stands before the tile.
template <class In, class Out, class Value, class Function>
struct scan_work {
  In in;
  Out out;
  long long count;
  Value init;
  bool has_init, exclusive;
  const Value *before;
  Function function;
  PK_BOTH void operator()(long long tile) {
    const long long begin = tile * fold_length, end = begin + fold_length < count ? begin + fold_length : count;
    bool any = tile > 0 || has_init;
    Value all = tile > 0 ? before[tile - 1] : init;
    for (long long i = begin; i < end; ++i) {
      const Value value = in[i];
      const Value next = any ? Value(function(all, value)) : value;
      out[i] = exclusive ? all : next;
      all = next;
      any = true;
    }
  }
};
// A value, and whether it is the first of its run.
template <class Value>
struct in_run {
  Value value;
  bool first;
};
template <class Value, class Function>
struct run_function {
  Function function;
  PK_BOTH in_run<Value> operator()(const in_run<Value> &a, const in_run<Value> &b) {
    return b.first ? b : in_run<Value>{Value(function(a.value, b.value)), a.first};
  }
};
template <class Keys, class Values, class Same, class Value>
struct begin_runs {
  Keys keys;
  Values values;
  Same same;
  in_run<Value> *out;
  bool exclusive;  // each value but the first of a run is the one before it
  Value init;
  PK_BOTH void operator()(long long i) {
    const bool first = i == 0 || !same(keys[i - 1], keys[i]);
    out[i].value = !exclusive ? Value(values[i]) : first ? init : Value(values[i - 1]);
    out[i].first = first;
  }
};
template <class Value>
struct value_of_run {
  PK_BOTH Value operator()(const in_run<Value> &one) { return one.value; }
};
template <class Value>
struct first_of_run {
  PK_BOTH long long operator()(const in_run<Value> &one) { return one.first ? 1 : 0; }
};
// The last of each run has the run's result.
template <class Keys, class KeysOut, class ValuesOut, class Value>
struct end_runs {
  Keys keys;
  KeysOut keys_out;
  ValuesOut values_out;
  const in_run<Value> *runs;
  const long long *number;  // of the element's run, from 1
  long long count;
  PK_BOTH void operator()(long long i) {
    if (i == 0 || number[i - 1] != number[i]) keys_out[number[i] - 1] = keys[i];
    if (i + 1 == count || number[i + 1] != number[i]) values_out[number[i] - 1] = runs[i].value;
  }
};
template <class Stencil, class Test>
struct flag_work {
  Stencil stencil;
  Test test;
  long long *flags;
  PK_BOTH void operator()(long long i) { flags[i] = test(stencil[i]) ? 1 : 0; }
};
template <class Keys, class Same>
struct flag_first {
  Keys keys;
  Same same;
  long long *flags;
  PK_BOTH void operator()(long long i) { flags[i] = i == 0 || !same(keys[i - 1], keys[i]) ? 1 : 0; }
};
// sums: of the flags, each with its own.
template <class In, class Out, class Rest>
struct select_work {
  In in;
  Out out;
  Rest rest;
  bool has_rest;
  const long long *sums;
  PK_BOTH void operator()(long long i) {
    const long long before = i == 0 ? 0 : sums[i - 1];
    if (sums[i] != before)
      out[before] = in[i];
    else if (has_rest)
      rest[i - before] = in[i];
  }
};
}  // namespace pk_detail

#ifndef __CUDA_ARCH__
namespace pk_detail {
template <class Policy, class In, class Out, class Value, class Function>
void scan(const Policy &policy, In in, long long count, Out out, Value init, bool has_init, bool exclusive,
          Function function) {
  if (count <= 0) return;
  const long long tiles = (count + fold_length - 1) / fold_length;
  memory<Policy, Value> before(tiles);
  if (tiles > 1) {
    run(policy, fold_work<In, Value, Function>{in, count, init, has_init, before.get(), function}, tiles);
    scan(policy, before.get(), tiles, before.get(), init, false, false, function);
  }
  run(policy, scan_work<In, Out, Value, Function>{in, out, count, init, has_init, exclusive, before.get(), function},
      tiles);
  wait(policy);
}
template <class Policy, class Keys, class Values, class Out, class Same, class Value, class Function>
void scan_by_key(const Policy &policy, Keys keys, Values values, long long count, Out out, Same same, bool exclusive,
                 Value init, Function function) {
  if (count <= 0) return;
  typedef in_run<Value> Run;
  memory<Policy, Run> runs(count);
  run(policy, begin_runs<Keys, Values, Same, Value>{keys, values, same, runs.get(), exclusive, init}, count);
  scan(policy, runs.get(), count, runs.get(), Run{init, false}, false, false, run_function<Value, Function>{function});
  run(policy, transform_work<Run *, Out, value_of_run<Value>>{runs.get(), out, {}}, count);
  wait(policy);
}
template <class Policy>
long long last_sum(const Policy &policy, long long *flags, long long count) {
  long long last = 0;
  scan(policy, flags, count, flags, 0ll, false, false, plus<long long>());
  fetch(policy, &last, flags + count - 1, 1);
  return last;
}
// How many were selected. Reads all before it writes: the result may lie where the elements do.
template <class Policy, class In, class Out, class Rest>
long long select(const Policy &policy, In in, long long *flags, long long count, Out out, Rest rest, bool has_rest) {
  typedef typename plain<decltype(in[0])>::type Value;
  const long long selected = last_sum(policy, flags, count);
  memory<Policy, Value> aside(count);
  run(policy, copy_work<In, Value *>{in, aside.get()}, count);
  run(policy, select_work<Value *, Out, Rest>{aside.get(), out, rest, has_rest, flags}, count);
  wait(policy);
  return selected;
}
template <class Policy, class In, class Stencil, class Out, class Rest, class Test>
long long select_if(const Policy &policy, In in, Stencil stencil, long long count, Out out, Rest rest, bool has_rest,
                    Test test) {
  if (count <= 0) return 0;
  memory<Policy, long long> flags(count);
  run(policy, flag_work<Stencil, Test>{stencil, test, flags.get()}, count);
  return select(policy, in, flags.get(), count, out, rest, has_rest);
}
}  // namespace pk_detail

template <PK_POLICY, class In, class Out, class Function>
Out inclusive_scan(const Policy &policy, In first, In last, Out out, Function function) {
  pk_detail::scan(policy, pk_detail::raw(first), last - first, pk_detail::raw(out), pk_detail::value_of<In>(), false,
                  false, function);
  return out + (last - first);
}
template <PK_POLICY, class In, class Out>
Out inclusive_scan(const Policy &policy, In first, In last, Out out) {
  return thrust::inclusive_scan(policy, first, last, out, plus<>());
}
PK_THRUST_WITHOUT_POLICY(inclusive_scan);
template <PK_POLICY, class In, class Out, class Value, class Function>
Out exclusive_scan(const Policy &policy, In first, In last, Out out, Value init, Function function) {
  pk_detail::scan(policy, pk_detail::raw(first), last - first, pk_detail::raw(out), init, true, true, function);
  return out + (last - first);
}
template <PK_POLICY, class In, class Out, class Value>
Out exclusive_scan(const Policy &policy, In first, In last, Out out, Value init) {
  return thrust::exclusive_scan(policy, first, last, out, init, plus<>());
}
template <PK_POLICY, class In, class Out>
Out exclusive_scan(const Policy &policy, In first, In last, Out out) {
  return thrust::exclusive_scan(policy, first, last, out, pk_detail::value_of<In>());
}
PK_THRUST_WITHOUT_POLICY(exclusive_scan);
template <PK_POLICY, class In, class Out, class Unary, class Binary>
Out transform_inclusive_scan(const Policy &policy, In first, In last, Out out, Unary unary, Binary binary) {
  return thrust::inclusive_scan(policy, make_transform_iterator(first, unary), make_transform_iterator(last, unary),
                                out, binary);
}
PK_THRUST_WITHOUT_POLICY(transform_inclusive_scan);
template <PK_POLICY, class In, class Out, class Unary, class Value, class Binary>
Out transform_exclusive_scan(const Policy &policy, In first, In last, Out out, Unary unary, Value init, Binary binary) {
  return thrust::exclusive_scan(policy, make_transform_iterator(first, unary), make_transform_iterator(last, unary),
                                out, init, binary);
}
PK_THRUST_WITHOUT_POLICY(transform_exclusive_scan);

// ---- by key
template <PK_POLICY, class Keys, class Values, class Out, class Same, class Function>
Out inclusive_scan_by_key(const Policy &policy, Keys first, Keys last, Values values, Out out, Same same,
                          Function function) {
  pk_detail::scan_by_key(policy, pk_detail::raw(first), pk_detail::raw(values), last - first, pk_detail::raw(out), same,
                         false, pk_detail::value_of<Values>(), function);
  return out + (last - first);
}
template <PK_POLICY, class Keys, class Values, class Out>
Out inclusive_scan_by_key(const Policy &policy, Keys first, Keys last, Values values, Out out) {
  return thrust::inclusive_scan_by_key(policy, first, last, values, out, equal_to<>(), plus<>());
}
PK_THRUST_WITHOUT_POLICY(inclusive_scan_by_key);
template <PK_POLICY, class Keys, class Values, class Out, class Value, class Same, class Function>
Out exclusive_scan_by_key(const Policy &policy, Keys first, Keys last, Values values, Out out, Value init, Same same,
                          Function function) {
  pk_detail::scan_by_key(policy, pk_detail::raw(first), pk_detail::raw(values), last - first, pk_detail::raw(out), same,
                         true, init, function);
  return out + (last - first);
}
template <PK_POLICY, class Keys, class Values, class Out, class Value>
Out exclusive_scan_by_key(const Policy &policy, Keys first, Keys last, Values values, Out out, Value init) {
  return thrust::exclusive_scan_by_key(policy, first, last, values, out, init, equal_to<>(), plus<>());
}
template <PK_POLICY, class Keys, class Values, class Out>
Out exclusive_scan_by_key(const Policy &policy, Keys first, Keys last, Values values, Out out) {
  return thrust::exclusive_scan_by_key(policy, first, last, values, out, pk_detail::value_of<Values>());
}
PK_THRUST_WITHOUT_POLICY(exclusive_scan_by_key);
template <PK_POLICY, class Keys, class Values, class KeysOut, class ValuesOut, class Same, class Function>
pair<KeysOut, ValuesOut> reduce_by_key(const Policy &policy, Keys first, Keys last, Values values, KeysOut keys_out,
                                       ValuesOut values_out, Same same, Function function) {
  typedef pk_detail::value_of<Values> Value;
  typedef pk_detail::in_run<Value> Run;
  const long long count = last - first;
  if (count <= 0) return pair<KeysOut, ValuesOut>(keys_out, values_out);
  pk_detail::memory<Policy, Run> runs(count);
  pk_detail::memory<Policy, long long> number(count);
  pk_detail::run(policy,
                 pk_detail::begin_runs<pk_detail::raw_t<Keys>, pk_detail::raw_t<Values>, Same, Value>{
                     pk_detail::raw(first), pk_detail::raw(values), same, runs.get(), false, Value()},
                 count);
  pk_detail::run(
      policy,
      pk_detail::transform_work<Run *, long long *, pk_detail::first_of_run<Value>>{runs.get(), number.get(), {}},
      count);
  const long long all = pk_detail::last_sum(policy, number.get(), count);
  pk_detail::scan(policy, runs.get(), count, runs.get(), Run{Value(), false}, false, false,
                  pk_detail::run_function<Value, Function>{function});
  pk_detail::run(
      policy,
      pk_detail::end_runs<pk_detail::raw_t<Keys>, pk_detail::raw_t<KeysOut>, pk_detail::raw_t<ValuesOut>, Value>{
          pk_detail::raw(first), pk_detail::raw(keys_out), pk_detail::raw(values_out), runs.get(), number.get(), count},
      count);
  pk_detail::wait(policy);
  return pair<KeysOut, ValuesOut>(keys_out + all, values_out + all);
}
template <PK_POLICY, class Keys, class Values, class KeysOut, class ValuesOut, class Same>
pair<KeysOut, ValuesOut> reduce_by_key(const Policy &policy, Keys first, Keys last, Values values, KeysOut keys_out,
                                       ValuesOut values_out, Same same) {
  return thrust::reduce_by_key(policy, first, last, values, keys_out, values_out, same, plus<>());
}
template <PK_POLICY, class Keys, class Values, class KeysOut, class ValuesOut>
pair<KeysOut, ValuesOut> reduce_by_key(const Policy &policy, Keys first, Keys last, Values values, KeysOut keys_out,
                                       ValuesOut values_out) {
  return thrust::reduce_by_key(policy, first, last, values, keys_out, values_out, equal_to<>());
}
PK_THRUST_WITHOUT_POLICY(reduce_by_key);

// ---- selections
template <PK_POLICY, class In, class Stencil, class Out, class Test>
Out copy_if(const Policy &policy, In first, In last, Stencil stencil, Out out, Test test) {
  typedef pk_detail::raw_t<Out> To;
  return out + pk_detail::select_if(policy, pk_detail::raw(first), pk_detail::raw(stencil), last - first,
                                    pk_detail::raw(out), (To)pk_detail::raw(out), false, test);
}
template <PK_POLICY, class In, class Out, class Test>
Out copy_if(const Policy &policy, In first, In last, Out out, Test test) {
  return thrust::copy_if(policy, first, last, first, out, test);
}
PK_THRUST_WITHOUT_POLICY(copy_if);
template <PK_POLICY, class In, class Stencil, class Out, class Test>
Out remove_copy_if(const Policy &policy, In first, In last, Stencil stencil, Out out, Test test) {
  return thrust::copy_if(policy, first, last, stencil, out, pk_detail::negated<Test>{test});
}
template <PK_POLICY, class In, class Out, class Test>
Out remove_copy_if(const Policy &policy, In first, In last, Out out, Test test) {
  return thrust::remove_copy_if(policy, first, last, first, out, test);
}
PK_THRUST_WITHOUT_POLICY(remove_copy_if);
template <PK_POLICY, class It, class Stencil, class Test>
It remove_if(const Policy &policy, It first, It last, Stencil stencil, Test test) {
  return thrust::remove_copy_if(policy, first, last, stencil, first, test);
}
template <PK_POLICY, class It, class Test>
It remove_if(const Policy &policy, It first, It last, Test test) {
  return thrust::remove_copy_if(policy, first, last, first, first, test);
}
PK_THRUST_WITHOUT_POLICY(remove_if);
template <PK_POLICY, class It, class Value>
It remove(const Policy &policy, It first, It last, const Value &value) {
  return thrust::remove_if(policy, first, last, pk_detail::equals_value<Value>{value});
}
PK_THRUST_WITHOUT_POLICY(remove);
template <PK_POLICY, class In, class Out, class Value>
Out remove_copy(const Policy &policy, In first, In last, Out out, const Value &value) {
  return thrust::remove_copy_if(policy, first, last, out, pk_detail::equals_value<Value>{value});
}
PK_THRUST_WITHOUT_POLICY(remove_copy);

template <PK_POLICY, class In, class Out, class Rest, class Test>
pair<Out, Rest> partition_copy(const Policy &policy, In first, In last, Out out, Rest rest, Test test) {
  const long long count = last - first;
  const long long selected = pk_detail::select_if(policy, pk_detail::raw(first), pk_detail::raw(first), count,
                                                  pk_detail::raw(out), pk_detail::raw(rest), true, test);
  return pair<Out, Rest>(out + selected, rest + (count - selected));
}
PK_THRUST_WITHOUT_POLICY(partition_copy);
template <PK_POLICY, class It, class Stencil, class Test>
It stable_partition(const Policy &policy, It first, It last, Stencil stencil, Test test) {
  typedef pk_detail::value_of<It> Value;
  const long long count = last - first;
  pk_detail::memory<Policy, Value> rest(count > 0 ? count : 1);
  const long long selected = pk_detail::select_if(policy, pk_detail::raw(first), pk_detail::raw(stencil), count,
                                                  pk_detail::raw(first), rest.get(), true, test);
  pk_detail::run(policy,
                 pk_detail::copy_work<Value *, pk_detail::raw_t<It>>{rest.get(), pk_detail::raw(first + selected)},
                 count - selected);
  pk_detail::wait(policy);
  return first + selected;
}
template <PK_POLICY, class It, class Test>
It stable_partition(const Policy &policy, It first, It last, Test test) {
  return thrust::stable_partition(policy, first, last, first, test);
}
PK_THRUST_WITHOUT_POLICY(stable_partition);
template <PK_POLICY, class It, class Test>
It partition(const Policy &policy, It first, It last, Test test) {
  return thrust::stable_partition(policy, first, last, first, test);
}
PK_THRUST_WITHOUT_POLICY(partition);

// ---- of equal neighbours the first
template <PK_POLICY, class In, class Out, class Same>
Out unique_copy(const Policy &policy, In first, In last, Out out, Same same) {
  typedef pk_detail::raw_t<Out> To;
  const long long count = last - first;
  if (count <= 0) return out;
  pk_detail::memory<Policy, long long> flags(count);
  pk_detail::run(policy, pk_detail::flag_first<pk_detail::raw_t<In>, Same>{pk_detail::raw(first), same, flags.get()},
                 count);
  return out + pk_detail::select(policy, pk_detail::raw(first), flags.get(), count, pk_detail::raw(out),
                                 (To)pk_detail::raw(out), false);
}
template <PK_POLICY, class In, class Out>
Out unique_copy(const Policy &policy, In first, In last, Out out) {
  return thrust::unique_copy(policy, first, last, out, equal_to<>());
}
PK_THRUST_WITHOUT_POLICY(unique_copy);
template <PK_POLICY, class It, class Same>
It unique(const Policy &policy, It first, It last, Same same) {
  return thrust::unique_copy(policy, first, last, first, same);
}
template <PK_POLICY, class It>
It unique(const Policy &policy, It first, It last) {
  return thrust::unique_copy(policy, first, last, first, equal_to<>());
}
PK_THRUST_WITHOUT_POLICY(unique);
template <PK_POLICY, class Keys, class Values, class KeysOut, class ValuesOut>
pair<KeysOut, ValuesOut> unique_by_key_copy(const Policy &policy, Keys first, Keys last, Values values,
                                            KeysOut keys_out, ValuesOut values_out) {
  return thrust::reduce_by_key(policy, first, last, values, keys_out, values_out, equal_to<>(), project1st<>());
}
PK_THRUST_WITHOUT_POLICY(unique_by_key_copy);
template <PK_POLICY, class Keys, class Values>
pair<Keys, Values> unique_by_key(const Policy &policy, Keys first, Keys last, Values values) {
  const long long count = last - first;
  if (count <= 0) return pair<Keys, Values>(first, values);
  pk_detail::memory<Policy, long long> flags(count), sums(count);
  typedef pk_detail::raw_t<Keys> RawKeys;
  typedef pk_detail::raw_t<Values> RawValues;
  pk_detail::run(policy, pk_detail::flag_first<RawKeys, equal_to<>>{pk_detail::raw(first), equal_to<>(), flags.get()},
                 count);
  pk_detail::run(policy, pk_detail::copy_work<long long *, long long *>{flags.get(), sums.get()}, count);
  const long long kept = pk_detail::select(policy, pk_detail::raw(first), flags.get(), count, pk_detail::raw(first),
                                           (RawKeys)pk_detail::raw(first), false);
  pk_detail::select(policy, pk_detail::raw(values), sums.get(), count, pk_detail::raw(values),
                    (RawValues)pk_detail::raw(values), false);
  return pair<Keys, Values>(first + kept, values + kept);
}
PK_THRUST_WITHOUT_POLICY(unique_by_key);
#endif

}  // namespace thrust
