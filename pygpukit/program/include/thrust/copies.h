// copies.h: copies between the host and the device, and what writes each element by itself: fill, transform, gather.
#pragma once
#include <algorithm>

#include "functional.h"
#include "iterators.h"

namespace thrust {

// ---- the work of the algorithms
namespace pk_detail {
template <class In, class Out>
struct copy_work {
  In in;
  Out out;
  PK_BOTH void operator()(long long i) { out[i] = in[i]; }
};
template <class Out, class Value>
struct fill_work {
  Out out;
  Value value;
  PK_BOTH void operator()(long long i) { out[i] = value; }
};
template <class Out, class Value>
struct sequence_work {
  Out out;
  Value first, step;
  PK_BOTH void operator()(long long i) { out[i] = Value(first + Value(i) * step); }
};
template <class In, class Function>
struct for_each_work {
  In in;
  Function function;
  PK_BOTH void operator()(long long i) { function(in[i]); }
};
template <class Out, class Function>
struct generate_work {
  Out out;
  Function function;
  PK_BOTH void operator()(long long i) { out[i] = function(); }
};
template <class Out, class Function>
struct tabulate_work {
  Out out;
  Function function;
  PK_BOTH void operator()(long long i) { out[i] = function(i); }
};
template <class In, class Out, class Function>
struct transform_work {
  In in;
  Out out;
  Function function;
  PK_BOTH void operator()(long long i) { out[i] = function(in[i]); }
};
template <class In, class Other, class Out, class Function>
struct transform_two_work {
  In in;
  Other other;
  Out out;
  Function function;
  PK_BOTH void operator()(long long i) { out[i] = function(in[i], other[i]); }
};
template <class In, class Stencil, class Out, class Function, class Test>
struct transform_if_work {
  In in;
  Stencil stencil;
  Out out;
  Function function;
  Test test;
  PK_BOTH void operator()(long long i) {
    if (test(stencil[i])) out[i] = function(in[i]);
  }
};
template <class It, class Other>
struct swap_work {
  It it;
  Other other;
  long long shift;  // the other's place of element i is shift - i where it is not 0
  PK_BOTH void operator()(long long i) {
    const long long place = shift != 0 ? shift - i : i;
    auto kept = it[i];
    it[i] = other[place];
    other[place] = kept;
  }
};
template <class In, class Out, class Function>
struct difference_work {
  In in;
  Out out;
  Function function;
  PK_BOTH void operator()(long long i) {
    if (i == 0)
      out[i] = in[i];
    else
      out[i] = function(in[i], in[i - 1]);
  }
};
struct take_one {
  PK_BOTH bool operator()(bool one) { return one; }
};
template <class Value>
struct equals_value {
  Value value;
  template <class Other>
  PK_BOTH bool operator()(const Other &other) {
    return other == value;
  }
};
template <class Value>
struct same_value {
  Value value;
  template <class Other>
  PK_BOTH Value operator()(const Other &) {
    return value;
  }
};
}  // namespace pk_detail

#ifndef __CUDA_ARCH__
// ---- copies
namespace pk_detail {
template <class In, class Out>
void copy_within(const device_policy &policy, In in, Out out, long long count) {
  run(policy, copy_work<In, Out>{in, out}, count);
}
template <class Value>
void copy_within(const device_policy &policy, Value *in, Value *out, long long count) {
  if (count > 0)
    check(cudaMemcpyAsync((void *)out, (const void *)in, count * sizeof(Value), cudaMemcpyDefault, policy.stream),
          "copy");
}
template <class Value>
void copy_within(const device_policy &policy, const Value *in, Value *out, long long count) {
  copy_within(policy, const_cast<Value *>(in), out, count);
}
template <class Value, class Out>
void send(const device_policy &policy, const Value *in, Out out, long long count) {
  device_memory<Value> aside(count);
  check(cudaMemcpy((void *)aside.get(), (const void *)in, count * sizeof(Value), cudaMemcpyHostToDevice), "copy");
  copy_within(policy, aside.get(), out, count);
  wait(policy);
}
template <class Value>
void send(const device_policy &, const Value *in, Value *out, long long count) {
  check(cudaMemcpy((void *)out, (const void *)in, count * sizeof(Value), cudaMemcpyHostToDevice), "copy");
}
template <class In, class Value>
void receive(const device_policy &policy, In in, Value *out, long long count) {
  device_memory<Value> aside(count);
  copy_within(policy, in, aside.get(), count);
  fetch(policy, out, aside.get(), count);
}
template <class Value>
void receive(const device_policy &policy, Value *in, std::remove_const_t<Value> *out, long long count) {
  fetch(policy, out, (const std::remove_const_t<Value> *)in, count);
}
template <class Value, class Count>
Value *moved(Value *place, Count count) {
  return place + count;
}
}  // namespace pk_detail

template <class In, class Out>
Out copy(const pk_detail::host_policy &, In first, In last, Out out) {
  for (; first != last; ++first, ++out) *out = *first;
  return out;
}
template <class In, class Out>
Out copy(const pk_detail::device_policy &policy, In first, In last, Out out) {
  pk_detail::copy_within(policy, pk_detail::raw(first), pk_detail::raw(out), last - first);
  pk_detail::wait(policy);
  return out + (last - first);
}
template <class In, class Out, std::enable_if_t<!pk_detail::is_policy<In>::value, int> = 0>
Out copy(In first, In last, Out out) {
  typedef pk_detail::value_of<In> Value;
  constexpr int from = pk_detail::system_of<In>::value, to = pk_detail::system_of<Out>::value;
  const pk_detail::device_policy policy;
  if constexpr (from == pk_detail::DEVICE_SYSTEM && to == pk_detail::HOST_SYSTEM) {
    const long long count = last - first;
    if (count <= 0) return out;
    if constexpr (std::is_same<Out, Value *>::value) {
      pk_detail::receive(policy, pk_detail::raw(first), out, count);
      return out + count;
    } else {
      std::unique_ptr<Value[]> aside(new Value[count]);
      pk_detail::receive(policy, pk_detail::raw(first), aside.get(), count);
      return std::copy(aside.get(), aside.get() + count, out);
    }
  } else if constexpr (from == pk_detail::HOST_SYSTEM && to == pk_detail::DEVICE_SYSTEM) {
    const long long count = std::distance(first, last);
    if (count <= 0) return out;
    if constexpr (std::is_pointer<In>::value) {
      pk_detail::send(policy, (const Value *)first, pk_detail::raw(out), count);
    } else {
      std::unique_ptr<Value[]> aside(new Value[count]);
      std::copy(first, last, aside.get());
      pk_detail::send(policy, (const Value *)aside.get(), pk_detail::raw(out), count);
    }
    return out + count;
  } else {
    return thrust::copy(pk_detail::policy_of<In, Out>(), first, last, out);
  }
}
template <class In, class Count, class Out, std::enable_if_t<!pk_detail::is_policy<In>::value, int> = 0>
Out copy_n(In first, Count count, Out out) {
  return thrust::copy(first, first + count, out);
}
template <class Policy, class In, class Count, class Out,
          std::enable_if_t<pk_detail::is_policy<Policy>::value, int> = 0>
Out copy_n(const Policy &policy, In first, Count count, Out out) {
  return thrust::copy(policy, first, first + count, out);
}

// ---- each element by itself
#define PK_POLICY class Policy, std::enable_if_t<pk_detail::is_policy<Policy>::value, int> = 0

template <PK_POLICY, class It, class Value>
void fill(const Policy &policy, It first, It last, const Value &value) {
  typedef pk_detail::value_of<It> Element;
  pk_detail::run(policy, pk_detail::fill_work<pk_detail::raw_t<It>, Element>{pk_detail::raw(first), Element(value)},
                 last - first);
  pk_detail::wait(policy);
}
PK_THRUST_WITHOUT_POLICY(fill);
template <PK_POLICY, class It, class Count, class Value>
It fill_n(const Policy &policy, It first, Count count, const Value &value) {
  thrust::fill(policy, first, first + count, value);
  return first + count;
}
PK_THRUST_WITHOUT_POLICY(fill_n);
template <PK_POLICY, class It, class Value>
void uninitialized_fill(const Policy &policy, It first, It last, const Value &value) {
  thrust::fill(policy, first, last, value);
}
PK_THRUST_WITHOUT_POLICY(uninitialized_fill);
template <class In, class Out>
Out uninitialized_copy(In first, In last, Out out) {
  return thrust::copy(first, last, out);
}

template <PK_POLICY, class It, class Value, class Step>
void sequence(const Policy &policy, It first, It last, Value from, Step step) {
  typedef pk_detail::value_of<It> Element;
  pk_detail::run(
      policy,
      pk_detail::sequence_work<pk_detail::raw_t<It>, Element>{pk_detail::raw(first), Element(from), Element(step)},
      last - first);
  pk_detail::wait(policy);
}
template <PK_POLICY, class It, class Value>
void sequence(const Policy &policy, It first, It last, Value from) {
  thrust::sequence(policy, first, last, from, pk_detail::value_of<It>(1));
}
template <PK_POLICY, class It>
void sequence(const Policy &policy, It first, It last) {
  thrust::sequence(policy, first, last, pk_detail::value_of<It>(0));
}
PK_THRUST_WITHOUT_POLICY(sequence);

template <PK_POLICY, class It, class Function>
It for_each(const Policy &policy, It first, It last, Function function) {
  pk_detail::run(policy, pk_detail::for_each_work<pk_detail::raw_t<It>, Function>{pk_detail::raw(first), function},
                 last - first);
  pk_detail::wait(policy);
  return last;
}
PK_THRUST_WITHOUT_POLICY(for_each);
template <PK_POLICY, class It, class Count, class Function>
It for_each_n(const Policy &policy, It first, Count count, Function function) {
  return thrust::for_each(policy, first, first + count, function);
}
PK_THRUST_WITHOUT_POLICY(for_each_n);

template <PK_POLICY, class It, class Function>
void generate(const Policy &policy, It first, It last, Function function) {
  pk_detail::run(policy, pk_detail::generate_work<pk_detail::raw_t<It>, Function>{pk_detail::raw(first), function},
                 last - first);
  pk_detail::wait(policy);
}
// On the host one function makes all of them, as rand() does.
template <class It, class Function>
void generate(const pk_detail::host_policy &, It first, It last, Function function) {
  std::generate(first, last, function);
}
PK_THRUST_WITHOUT_POLICY(generate);
template <PK_POLICY, class It, class Function>
void tabulate(const Policy &policy, It first, It last, Function function) {
  pk_detail::run(policy, pk_detail::tabulate_work<pk_detail::raw_t<It>, Function>{pk_detail::raw(first), function},
                 last - first);
  pk_detail::wait(policy);
}
PK_THRUST_WITHOUT_POLICY(tabulate);

template <PK_POLICY, class In, class Out, class Function>
Out transform(const Policy &policy, In first, In last, Out out, Function function) {
  pk_detail::run(policy,
                 pk_detail::transform_work<pk_detail::raw_t<In>, pk_detail::raw_t<Out>, Function>{
                     pk_detail::raw(first), pk_detail::raw(out), function},
                 last - first);
  pk_detail::wait(policy);
  return out + (last - first);
}
template <PK_POLICY, class In, class Other, class Out, class Function>
Out transform(const Policy &policy, In first, In last, Other other, Out out, Function function) {
  pk_detail::run(
      policy,
      pk_detail::transform_two_work<pk_detail::raw_t<In>, pk_detail::raw_t<Other>, pk_detail::raw_t<Out>, Function>{
          pk_detail::raw(first), pk_detail::raw(other), pk_detail::raw(out), function},
      last - first);
  pk_detail::wait(policy);
  return out + (last - first);
}
PK_THRUST_WITHOUT_POLICY(transform);
template <PK_POLICY, class In, class Stencil, class Out, class Function, class Test>
Out transform_if(const Policy &policy, In first, In last, Stencil stencil, Out out, Function function, Test test) {
  pk_detail::run(policy,
                 pk_detail::transform_if_work<pk_detail::raw_t<In>, pk_detail::raw_t<Stencil>, pk_detail::raw_t<Out>,
                                              Function, Test>{pk_detail::raw(first), pk_detail::raw(stencil),
                                                              pk_detail::raw(out), function, test},
                 last - first);
  pk_detail::wait(policy);
  return out + (last - first);
}
template <PK_POLICY, class In, class Out, class Function, class Test>
Out transform_if(const Policy &policy, In first, In last, Out out, Function function, Test test) {
  return thrust::transform_if(policy, first, last, first, out, function, test);
}
PK_THRUST_WITHOUT_POLICY(transform_if);

template <PK_POLICY, class It, class Test, class Value>
void replace_if(const Policy &policy, It first, It last, Test test, const Value &value) {
  typedef pk_detail::value_of<It> Element;
  thrust::transform_if(policy, first, last, first, first, pk_detail::same_value<Element>{Element(value)}, test);
}
PK_THRUST_WITHOUT_POLICY(replace_if);
template <PK_POLICY, class It, class Value>
void replace(const Policy &policy, It first, It last, const Value &old, const Value &value) {
  typedef pk_detail::value_of<It> Element;
  thrust::replace_if(policy, first, last, pk_detail::equals_value<Element>{Element(old)}, value);
}
PK_THRUST_WITHOUT_POLICY(replace);

template <PK_POLICY, class Map, class In, class Out>
Out gather(const Policy &policy, Map first, Map last, In in, Out out) {
  typedef permutation_iterator<pk_detail::raw_t<In>, pk_detail::raw_t<Map>> From;
  const From from(pk_detail::raw(in), pk_detail::raw(first));
  pk_detail::run(policy, pk_detail::copy_work<From, pk_detail::raw_t<Out>>{from, pk_detail::raw(out)}, last - first);
  pk_detail::wait(policy);
  return out + (last - first);
}
PK_THRUST_WITHOUT_POLICY(gather);
template <PK_POLICY, class In, class Map, class Out>
void scatter(const Policy &policy, In first, In last, Map map, Out out) {
  typedef permutation_iterator<pk_detail::raw_t<Out>, pk_detail::raw_t<Map>> To;
  const To to(pk_detail::raw(out), pk_detail::raw(map));
  pk_detail::run(policy, pk_detail::copy_work<pk_detail::raw_t<In>, To>{pk_detail::raw(first), to}, last - first);
  pk_detail::wait(policy);
}
PK_THRUST_WITHOUT_POLICY(scatter);
template <PK_POLICY, class In, class Map, class Stencil, class Out>
void scatter_if(const Policy &policy, In first, In last, Map map, Stencil stencil, Out out) {
  thrust::transform_if(policy, first, last, stencil, permutation_iterator<Out, Map>(out, map), identity<>(),
                       pk_detail::take_one());
}
PK_THRUST_WITHOUT_POLICY(scatter_if);
template <PK_POLICY, class Map, class Stencil, class In, class Out>
Out gather_if(const Policy &policy, Map first, Map last, Stencil stencil, In in, Out out) {
  const permutation_iterator<In, Map> from(in, first);
  return thrust::transform_if(policy, from, from + (last - first), stencil, out, identity<>(), pk_detail::take_one());
}
PK_THRUST_WITHOUT_POLICY(gather_if);

template <PK_POLICY, class It, class Other>
Other swap_ranges(const Policy &policy, It first, It last, Other other) {
  pk_detail::run(policy,
                 pk_detail::swap_work<pk_detail::raw_t<It>, pk_detail::raw_t<Other>>{pk_detail::raw(first),
                                                                                     pk_detail::raw(other), 0},
                 last - first);
  pk_detail::wait(policy);
  return other + (last - first);
}
PK_THRUST_WITHOUT_POLICY(swap_ranges);
template <PK_POLICY, class It>
void reverse(const Policy &policy, It first, It last) {
  const long long count = last - first;
  if (count > 1)
    pk_detail::run(policy,
                   pk_detail::swap_work<pk_detail::raw_t<It>, pk_detail::raw_t<It>>{pk_detail::raw(first),
                                                                                    pk_detail::raw(first), count - 1},
                   count / 2);
  pk_detail::wait(policy);
}
PK_THRUST_WITHOUT_POLICY(reverse);
template <PK_POLICY, class In, class Out>
Out reverse_copy(const Policy &policy, In first, In last, Out out) {
  return thrust::copy(policy, make_reverse_iterator(last), make_reverse_iterator(first), out);
}
PK_THRUST_WITHOUT_POLICY(reverse_copy);
template <PK_POLICY, class In, class Out, class Function>
Out adjacent_difference(const Policy &policy, In first, In last, Out out, Function function) {
  const long long count = last - first;
  pk_detail::memory<Policy, pk_detail::value_of<In>> aside(count);  // the result may be written over what is read
  typedef pk_detail::value_of<In> *Aside;
  pk_detail::run(policy, pk_detail::copy_work<pk_detail::raw_t<In>, Aside>{pk_detail::raw(first), aside.get()}, count);
  pk_detail::run(
      policy,
      pk_detail::difference_work<Aside, pk_detail::raw_t<Out>, Function>{aside.get(), pk_detail::raw(out), function},
      count);
  pk_detail::wait(policy);
  return out + count;
}
template <PK_POLICY, class In, class Out>
Out adjacent_difference(const Policy &policy, In first, In last, Out out) {
  return thrust::adjacent_difference(policy, first, last, out, minus<>());
}
PK_THRUST_WITHOUT_POLICY(adjacent_difference);
#endif

}  // namespace thrust
