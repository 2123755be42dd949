// device.h: CUB's calls for the whole device, by the algorithms of Thrust's headers. Their temporary storage is their
// own: what they ask for in the first of the two calls is one byte.
#pragma once
#include <limits>

#include "../thrust/sorts.h"

// Of kernels that use them: the collectives of blocks and warps.
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>

// Under a name of this package's: NVRTC's headers have CUB's own.
namespace thrust {
namespace pk_detail {
template <class Key, class Value>
struct key_value {
  Key key;
  Value value;
};
}  // namespace pk_detail
}  // namespace thrust

namespace cub {

#ifndef __CUDA_ARCH__
typedef thrust::plus<> Sum;
typedef thrust::maximum<> Max;
typedef thrust::minimum<> Min;
typedef thrust::equal_to<> Equality;
typedef thrust::not_equal_to<> Inequality;
#endif
#if !defined(__CUDA_ARCH__) || defined(PYGPUKIT_SIM)
template <class Key, class Value>
using KeyValuePair = thrust::pk_detail::key_value<Key, Value>;
#endif

#ifndef __CUDA_ARCH__
template <class Value, class Offset = long long>
using CountingInputIterator = thrust::counting_iterator<Value>;
template <class Value, class Offset = long long>
using ConstantInputIterator = thrust::constant_iterator<Value>;
template <class Value, class Function, class It, class Offset = long long>
using TransformInputIterator = thrust::transform_iterator<Function, It>;
#endif

namespace pk_detail {
// The bits of a key between two of them, in the order of its values.
template <class Key>
struct bits_of {
  int begin, end;
  bool is_signed, is_real, descending;
  __host__ __device__ unsigned long long operator()(const Key &key) const {
    unsigned long long bits = 0;
    const unsigned char *bytes = (const unsigned char *)&key;
    for (int i = (int)sizeof(Key) - 1; i >= 0; --i) bits = bits << 8 | bytes[i];
    const unsigned long long sign = 1ull << (8 * sizeof(Key) - 1);
    if (is_real && bits == sign) bits = 0;  // -0 is 0
    if (is_real && (bits & sign) != 0)
      bits = ~bits;
    else if (is_real || is_signed)
      bits ^= sign;
    if (end < 64) bits &= (1ull << end) - 1;
    return bits >> begin;
  }
};
template <class Key>
struct bits_less {
  bits_of<Key> bits;
  __host__ __device__ bool operator()(const Key &a, const Key &b) const {
    return bits.descending ? bits(b) < bits(a) : bits(a) < bits(b);
  }
};
template <class In, class Key>
struct number_value {
  In in;
  __host__ __device__ thrust::pk_detail::key_value<int, Key> operator()(int i) { return {i, in[i]}; }
};
struct best_pair {
  bool largest;
  template <class Pair>
  __host__ __device__ Pair operator()(const Pair &a, const Pair &b) const {
    return (largest ? a.value < b.value : b.value < a.value) ? b : a;
  }
};
template <class In, class Level>
struct bin_of {
  In in;
  long long bins;
  Level lower, upper;
  const Level *levels;
  // `bins` where the value is in none.
  __host__ __device__ long long operator()(long long i) {
    const auto value = in[i];
    if (!(value >= lower && value < upper)) return bins;
    if (levels == nullptr) {
      const long long bin = (long long)((value - lower) * bins / (upper - lower));
      return bin < bins ? bin : bins - 1;
    }
    long long low = 0, high = bins;
    while (low + 1 < high) {
      const long long middle = (low + high) / 2;
      if (value < levels[middle])
        high = middle;
      else
        low = middle;
    }
    return low;
  }
};
}  // namespace pk_detail

#ifndef __CUDA_ARCH__
template <class Value>
struct DoubleBuffer {
  Value *d_buffers[2];
  int selector = 0;
  DoubleBuffer() : d_buffers{nullptr, nullptr} {}
  DoubleBuffer(Value *current, Value *alternate) : d_buffers{current, alternate} {}
  Value *Current() { return d_buffers[selector]; }
  Value *Alternate() { return d_buffers[selector ^ 1]; }
};

namespace pk_detail {
// In the first call, which has no storage, how much is needed; in the second the work.
template <class Work>
cudaError_t phase(void *storage, size_t &bytes, Work work) {
  if (storage == nullptr) {
    bytes = 1;
    return cudaSuccess;
  }
  try {
    work();
  } catch (const thrust::system_error &error) {
    return static_cast<cudaError_t>(error.code().value());
  } catch (const std::bad_alloc &) {
    return cudaErrorMemoryAllocation;
  }
  return cudaSuccess;
}
template <class Value, class Out>
void store(const thrust::pk_detail::device_policy &on, const Value &value, Out out) {
  thrust::fill_n(on, out, 1, value);
}
template <class In>
using value_of = std::remove_cv_t<typename thrust::iterator_traits<In>::value_type>;
template <class In, class Out, class Function, class Value>
void reduce(cudaStream_t stream, In in, Out out, long long count, Function function, Value init) {
  const thrust::pk_detail::device_policy on(stream);
  store(on, thrust::reduce(on, in, in + count, init, function), out);
}
template <class Key>
bits_less<Key> by_bits(int begin, int end, bool descending) {
  return {{begin, end, std::is_signed<Key>::value, !std::is_integral<Key>::value, descending}};
}
}  // namespace pk_detail

struct DeviceReduce {
  template <class In, class Out, class Count, class Function, class Value>
  static cudaError_t Reduce(void *storage, size_t &bytes, In in, Out out, Count count, Function function, Value init,
                            cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] { pk_detail::reduce(stream, in, out, count, function, init); });
  }
  template <class In, class Out, class Count>
  static cudaError_t Sum(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0) {
    typedef pk_detail::value_of<In> Value;
    return Reduce(storage, bytes, in, out, count, thrust::plus<>(), Value(), stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t Min(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0) {
    return Reduce(storage, bytes, in, out, count, thrust::minimum<>(),
                  std::numeric_limits<pk_detail::value_of<In>>::max(), stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t Max(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0) {
    return Reduce(storage, bytes, in, out, count, thrust::maximum<>(),
                  std::numeric_limits<pk_detail::value_of<In>>::lowest(), stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t ArgMin(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0) {
    return best(storage, bytes, in, out, count, stream, false);
  }
  template <class In, class Out, class Count>
  static cudaError_t ArgMax(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0) {
    return best(storage, bytes, in, out, count, stream, true);
  }
  template <class In, class Out, class Count, class Function, class Unary, class Value>
  static cudaError_t TransformReduce(void *storage, size_t &bytes, In in, Out out, Count count, Function function,
                                     Unary unary, Value init, cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      const thrust::pk_detail::device_policy on(stream);
      pk_detail::store(on, thrust::transform_reduce(on, in, in + count, unary, init, function), out);
    });
  }
  template <class Keys, class KeysOut, class Values, class ValuesOut, class Runs, class Function, class Count>
  static cudaError_t ReduceByKey(void *storage, size_t &bytes, Keys keys, KeysOut keys_out, Values values,
                                 ValuesOut values_out, Runs runs, Function function, Count count,
                                 cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      const thrust::pk_detail::device_policy on(stream);
      const auto ends =
          thrust::reduce_by_key(on, keys, keys + count, values, keys_out, values_out, thrust::equal_to<>(), function);
      pk_detail::store(on, ends.first - keys_out, runs);
    });
  }

 private:
  template <class In, class Out, class Count>
  static cudaError_t best(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream,
                          bool largest) {
    return pk_detail::phase(storage, bytes, [=] {
      typedef pk_detail::value_of<In> Value;
      typedef KeyValuePair<int, Value> Pair;
      const thrust::pk_detail::device_policy on(stream);
      const auto pairs =
          thrust::make_transform_iterator(thrust::counting_iterator<int>(0), pk_detail::number_value<In, Value>{in});
      const Pair init = {1, largest ? std::numeric_limits<Value>::lowest() : std::numeric_limits<Value>::max()};
      Pair result = init;
      thrust::pk_detail::fold(on, pairs, count, &result, false, pk_detail::best_pair{largest});
      pk_detail::store(on, result, out);
    });
  }
};

struct DeviceScan {
  template <class In, class Out, class Function, class Value, class Count>
  static cudaError_t ExclusiveScan(void *storage, size_t &bytes, In in, Out out, Function function, Value init,
                                   Count count, cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      thrust::exclusive_scan(thrust::pk_detail::device_policy(stream), in, in + count, out, init, function);
    });
  }
  template <class In, class Out, class Function, class Count>
  static cudaError_t InclusiveScan(void *storage, size_t &bytes, In in, Out out, Function function, Count count,
                                   cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      thrust::inclusive_scan(thrust::pk_detail::device_policy(stream), in, in + count, out, function);
    });
  }
  template <class In, class Out, class Count>
  static cudaError_t ExclusiveSum(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0) {
    return ExclusiveScan(storage, bytes, in, out, thrust::plus<>(), pk_detail::value_of<In>(), count, stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t InclusiveSum(void *storage, size_t &bytes, In in, Out out, Count count, cudaStream_t stream = 0) {
    return InclusiveScan(storage, bytes, in, out, thrust::plus<>(), count, stream);
  }
};

struct DeviceRadixSort {
#define PK_CUB_SORT(suffix, descending)                                                                            \
  template <class Key, class Count>                                                                                \
  static cudaError_t SortKeys##suffix(void *storage, size_t &bytes, const Key *in, Key *out, Count count,          \
                                      int begin = 0, int end = sizeof(Key) * 8, cudaStream_t stream = 0) {         \
    return pk_detail::phase(storage, bytes, [=] { keys(stream, in, out, count, begin, end, descending); });        \
  }                                                                                                                \
  template <class Key, class Value, class Count>                                                                   \
  static cudaError_t SortPairs##suffix(void *storage, size_t &bytes, const Key *in, Key *out, const Value *values, \
                                       Value *values_out, Count count, int begin = 0, int end = sizeof(Key) * 8,   \
                                       cudaStream_t stream = 0) {                                                  \
    return pk_detail::phase(storage, bytes,                                                                        \
                            [=] { pairs(stream, in, out, values, values_out, count, begin, end, descending); });   \
  }                                                                                                                \
  template <class Key, class Count>                                                                                \
  static cudaError_t SortKeys##suffix(void *storage, size_t &bytes, DoubleBuffer<Key> &both, Count count,          \
                                      int begin = 0, int end = sizeof(Key) * 8, cudaStream_t stream = 0) {         \
    return pk_detail::phase(storage, bytes, [&] {                                                                  \
      keys(stream, both.Current(), both.Alternate(), count, begin, end, descending);                               \
      both.selector ^= 1;                                                                                          \
    });                                                                                                            \
  }                                                                                                                \
  template <class Key, class Value, class Count>                                                                   \
  static cudaError_t SortPairs##suffix(void *storage, size_t &bytes, DoubleBuffer<Key> &both,                      \
                                       DoubleBuffer<Value> &values, Count count, int begin = 0,                    \
                                       int end = sizeof(Key) * 8, cudaStream_t stream = 0) {                       \
    return pk_detail::phase(storage, bytes, [&] {                                                                  \
      pairs(stream, both.Current(), both.Alternate(), values.Current(), values.Alternate(), count, begin, end,     \
            descending);                                                                                           \
      both.selector ^= 1;                                                                                          \
      values.selector ^= 1;                                                                                        \
    });                                                                                                            \
  }
  PK_CUB_SORT(, false)
  PK_CUB_SORT(Descending, true)
#undef PK_CUB_SORT

 private:
  template <class Key>
  static void keys(cudaStream_t stream, const Key *in, Key *out, long long count, int begin, int end, bool descending) {
    const thrust::pk_detail::device_policy on(stream);
    thrust::copy(on, in, in + count, out);
    thrust::stable_sort(on, out, out + count, pk_detail::by_bits<Key>(begin, end, descending));
  }
  template <class Key, class Value>
  static void pairs(cudaStream_t stream, const Key *in, Key *out, const Value *values, Value *values_out,
                    long long count, int begin, int end, bool descending) {
    const thrust::pk_detail::device_policy on(stream);
    thrust::copy(on, in, in + count, out);
    thrust::copy(on, values, values + count, values_out);
    thrust::stable_sort_by_key(on, out, out + count, values_out, pk_detail::by_bits<Key>(begin, end, descending));
  }
};

struct DeviceMergeSort {
#define PK_CUB_MERGE(prefix)                                                                                       \
  template <class Keys, class Count, class Less>                                                                   \
  static cudaError_t prefix##Keys(void *storage, size_t &bytes, Keys keys, Count count, Less less,                 \
                                  cudaStream_t stream = 0) {                                                       \
    return pk_detail::phase(storage, bytes, [=] {                                                                  \
      thrust::stable_sort(thrust::pk_detail::device_policy(stream), keys, keys + count, less);                     \
    });                                                                                                            \
  }                                                                                                                \
  template <class Keys, class Values, class Count, class Less>                                                     \
  static cudaError_t prefix##Pairs(void *storage, size_t &bytes, Keys keys, Values values, Count count, Less less, \
                                   cudaStream_t stream = 0) {                                                      \
    return pk_detail::phase(storage, bytes, [=] {                                                                  \
      thrust::stable_sort_by_key(thrust::pk_detail::device_policy(stream), keys, keys + count, values, less);      \
    });                                                                                                            \
  }
  PK_CUB_MERGE(Sort)
  PK_CUB_MERGE(StableSort)
#undef PK_CUB_MERGE
};

struct DeviceSelect {
  template <class In, class Out, class Selected, class Count, class Test>
  static cudaError_t If(void *storage, size_t &bytes, In in, Out out, Selected selected, Count count, Test test,
                        cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      const thrust::pk_detail::device_policy on(stream);
      pk_detail::store(on, thrust::copy_if(on, in, in + count, out, test) - out, selected);
    });
  }
  template <class In, class Flags, class Out, class Selected, class Count>
  static cudaError_t Flagged(void *storage, size_t &bytes, In in, Flags flags, Out out, Selected selected, Count count,
                             cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      const thrust::pk_detail::device_policy on(stream);
      pk_detail::store(on, thrust::copy_if(on, in, in + count, flags, out, thrust::identity<>()) - out, selected);
    });
  }
  template <class In, class Out, class Selected, class Count>
  static cudaError_t Unique(void *storage, size_t &bytes, In in, Out out, Selected selected, Count count,
                            cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      const thrust::pk_detail::device_policy on(stream);
      pk_detail::store(on, thrust::unique_copy(on, in, in + count, out) - out, selected);
    });
  }
};

// What is not selected follows in reverse order.
struct DevicePartition {
  template <class In, class Out, class Selected, class Count, class Test>
  static cudaError_t If(void *storage, size_t &bytes, In in, Out out, Selected selected, Count count, Test test,
                        cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      const thrust::pk_detail::device_policy on(stream);
      const auto rest = thrust::make_reverse_iterator(out + count);
      pk_detail::store(on, thrust::partition_copy(on, in, in + count, out, rest, test).first - out, selected);
    });
  }
};

struct DeviceRunLengthEncode {
  template <class In, class Values, class Lengths, class Runs, class Count>
  static cudaError_t Encode(void *storage, size_t &bytes, In in, Values values, Lengths lengths, Runs runs, Count count,
                            cudaStream_t stream = 0) {
    return DeviceReduce::ReduceByKey(storage, bytes, in, values, thrust::constant_iterator<int>(1), lengths, runs,
                                     thrust::plus<>(), count, stream);
  }
};

struct DeviceHistogram {
  template <class In, class Counter, class Level, class Count>
  static cudaError_t HistogramEven(void *storage, size_t &bytes, In in, Counter *counts, int levels, Level lower,
                                   Level upper, Count count, cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      bins<In, Counter, Level>(stream, in, counts, levels - 1, lower, upper, nullptr, count);
    });
  }
  template <class In, class Counter, class Level, class Count>
  static cudaError_t HistogramRange(void *storage, size_t &bytes, In in, Counter *counts, int levels,
                                    const Level *bounds, Count count, cudaStream_t stream = 0) {
    return pk_detail::phase(storage, bytes, [=] {
      Level ends[2];
      const thrust::pk_detail::device_policy on(stream);
      thrust::pk_detail::fetch(on, &ends[0], bounds, 1);
      thrust::pk_detail::fetch(on, &ends[1], bounds + levels - 1, 1);
      bins<In, Counter, Level>(stream, in, counts, levels - 1, ends[0], ends[1], bounds, count);
    });
  }

 private:
  // Sorted by their bins, the values of a bin lie between two places.
  template <class In, class Counter, class Level>
  static void bins(cudaStream_t stream, In in, Counter *counts, long long count_of_bins, Level lower, Level upper,
                   const Level *levels, long long count) {
    const thrust::pk_detail::device_policy on(stream);
    thrust::pk_detail::device_memory<long long> places(count), ends(count_of_bins + 1);
    const thrust::counting_iterator<long long> numbers(0);
    thrust::transform(on, numbers, numbers + count, places.get(),
                      pk_detail::bin_of<In, Level>{in, count_of_bins, lower, upper, levels});
    thrust::sort(on, places.get(), places.get() + count);
    thrust::lower_bound(on, places.get(), places.get() + count, numbers, numbers + (count_of_bins + 1), ends.get(),
                        thrust::less<>());
    thrust::transform(on, ends.get() + 1, ends.get() + count_of_bins + 1, ends.get(), counts, thrust::minus<>());
  }
};
#endif

}  // namespace cub
