// core.h: what every algorithm stands on: where it runs, the one kernel, and memory for a while.
#pragma once
#include <iterator>
#include <memory>
#include <type_traits>
#include <vector>

#include "errors.h"

#define PK_BOTH __host__ __device__
#define THRUST_VERSION 200800
#define THRUST_MAJOR_VERSION 2
#define THRUST_MINOR_VERSION 8
#define THRUST_SUBMINOR_VERSION 0

namespace thrust {

// Without the C++ library: kernels have it, too.
template <class It>
struct iterator_traits {
  typedef typename It::value_type value_type;
  typedef typename It::reference reference;
  typedef typename It::pointer pointer;
  typedef typename It::difference_type difference_type;
};
template <class Value>
struct iterator_traits<Value *> {
  typedef Value value_type;
  typedef Value &reference;
  typedef Value *pointer;
  typedef long long difference_type;
};
template <class Value>
struct iterator_traits<const Value *> {
  typedef Value value_type;
  typedef const Value &reference;
  typedef const Value *pointer;
  typedef long long difference_type;
};
template <class It>
struct iterator_value {
  typedef typename iterator_traits<It>::value_type type;
};
template <class It>
struct iterator_reference {
  typedef typename iterator_traits<It>::reference type;
};
template <class It>
struct iterator_difference {
  typedef typename iterator_traits<It>::difference_type type;
};

namespace pk_detail {

template <class Value>
struct plain {  // without reference and const
  typedef Value type;
};
template <class Value>
struct plain<Value &> : plain<Value> {};
template <class Value>
struct plain<Value &&> : plain<Value> {};
template <class Value>
struct plain<const Value> : plain<Value> {};
template <class Value>
PK_BOTH Value &&some();  // for decltype() alone

// ---- where an algorithm runs
struct seq_policy {};
#ifndef __CUDA_ARCH__
struct host_policy {
  template <class Allocator>
  host_policy operator()(const Allocator &) const {
    return *this;
  }
};
struct device_policy {
  cudaStream_t stream;
  device_policy(cudaStream_t on = 0) : stream(on) {}
  device_policy on(cudaStream_t other) const { return device_policy(other); }
  template <class Allocator>
  device_policy operator()(const Allocator &) const {
    return *this;
  }
};
template <class Policy>
struct is_policy : std::integral_constant<bool, std::is_same<Policy, host_policy>::value ||
                                                    std::is_same<Policy, seq_policy>::value ||
                                                    std::is_same<Policy, device_policy>::value> {};

enum system { NO_SYSTEM, HOST_SYSTEM, DEVICE_SYSTEM };
template <class Type, class = void>
struct has_category : std::false_type {};
template <class Type>
struct has_category<Type, std::void_t<typename Type::iterator_category>> : std::true_type {};
template <class It>
using iterator_only = std::enable_if_t<std::is_pointer<It>::value || has_category<It>::value>;
template <class Type, class = void>
struct system_of : std::integral_constant<int, has_category<Type>::value ? HOST_SYSTEM : NO_SYSTEM> {};
template <class Type>
struct system_of<Type, std::void_t<decltype(Type::pk_system)>> : std::integral_constant<int, Type::pk_system> {};
template <class Value>
struct system_of<Value *, void> : std::integral_constant<int, HOST_SYSTEM> {};
constexpr int most(int one) { return one; }
template <class... Others>
constexpr int most(int one, int two, Others... others) {
  return most(one > two ? one : two, others...);
}
// Of values and iterators: the host's where some are and none is the device's.
template <class... Types>
using policy_of =
    std::conditional_t<most(NO_SYSTEM, system_of<Types>::value...) == HOST_SYSTEM, host_policy, device_policy>;

// ---- an iterator as kernels have it
template <class It>
struct raw_iterator {
  typedef It type;
  static type of(const It &it) { return it; }
};
template <class It>
auto raw(const It &it) -> typename raw_iterator<It>::type {
  return raw_iterator<It>::of(it);
}
template <class It>
using raw_t = typename raw_iterator<It>::type;
template <class It>
using value_of = std::remove_cv_t<typename iterator_traits<It>::value_type>;

#endif

// ---- work: an object that is called with each number from 0 on
template <class Work>
__global__ void each(Work work, long long count) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) work(i);
}
#ifndef __CUDA_ARCH__
template <class Work>
void run(const host_policy &, Work work, long long count) {
  for (long long i = 0; i < count; ++i) work(i);
}
template <class Work>
void run(const seq_policy &, Work work, long long count) {
  run(host_policy(), work, count);
}
template <class Work>
void run(const device_policy &policy, Work work, long long count) {
  if (count <= 0) return;
  const int threads = 256;
  const long long blocks = (count + threads - 1) / threads, most_blocks = 1 << 20;
  each<<<(unsigned)(blocks < most_blocks ? blocks : most_blocks), threads, 0, policy.stream>>>(work, count);
  check(cudaGetLastError(), "launch of an algorithm's kernel");
}
inline void wait(const host_policy &) {}
inline void wait(const seq_policy &) {}
inline void wait(const device_policy &policy) { check(cudaStreamSynchronize(policy.stream), "an algorithm's kernel"); }

// ---- memory
inline void *take(size_t bytes) {
  void *memory = nullptr;
  if (bytes != 0) check(cudaMalloc(&memory, bytes), "memory of the device");
  return memory;
}
template <class Value>
class host_memory {
 public:
  explicit host_memory(long long count) : values_(new Value[count]) {}
  Value *get() const { return values_.get(); }

 private:
  std::unique_ptr<Value[]> values_;
};
template <class Value>
class device_memory {
 public:
  explicit device_memory(long long count) : values_(static_cast<Value *>(take(count * sizeof(Value)))) {}
  ~device_memory() { cudaFree((void *)values_); }
  device_memory(const device_memory &) = delete;
  device_memory &operator=(const device_memory &) = delete;
  Value *get() const { return values_; }

 private:
  Value *values_;
};
template <class Policy, class Value>
using memory = std::conditional_t<std::is_same<Policy, device_policy>::value, device_memory<Value>, host_memory<Value>>;

// Into memory of the host, when what goes before it is done.
template <class Value>
void fetch(const device_policy &policy, Value *to, const Value *from, long long count) {
  check(cudaMemcpyAsync((void *)to, (const void *)from, count * sizeof(Value), cudaMemcpyDeviceToHost, policy.stream),
        "copy to the host");
  wait(policy);
}
template <class Policy, class Value>
void fetch(const Policy &, Value *to, const Value *from, long long count) {
  for (long long i = 0; i < count; ++i) to[i] = from[i];
}

#endif

}  // namespace pk_detail

#ifndef __CUDA_ARCH__
namespace cuda {
static const pk_detail::device_policy par, par_nosync;
}  // namespace cuda
namespace omp {
static const pk_detail::host_policy par;
}  // namespace omp
static const pk_detail::host_policy host;
static const pk_detail::device_policy device;
#endif
static const pk_detail::seq_policy seq = {};
#ifndef __CUDA_ARCH__
struct host_system_tag {};
struct device_system_tag {};

template <class It>
typename std::iterator_traits<It>::difference_type distance(It first, It last) {
  return last - first;
}
template <class It, class Steps>
void advance(It &it, Steps steps) {
  it += steps;
}
#endif

}  // namespace thrust

// An algorithm without a policy: where its iterators say.
#define PK_THRUST_WITHOUT_POLICY(name)                                                                  \
  template <class First, class... Rest, std::enable_if_t<!pk_detail::is_policy<First>::value, int> = 0> \
  auto name(First first, Rest... rest)                                                                  \
      ->decltype(thrust::name(pk_detail::policy_of<First, Rest...>(), first, rest...)) {                \
    return thrust::name(pk_detail::policy_of<First, Rest...>(), first, rest...);                        \
  }
