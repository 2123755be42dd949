// attention.cu: the heads of a prompt's rows rotated and put into the cache; a sequence's blocks put together.
#include "key_parts.cuh"

namespace pk {

// A warp for each head of a prompt's row: query heads stay in qkv, keys and values go into the cache. Kept: what that
// has, T or codes with scales.
template <class T, class Kept = T>
__global__ void __launch_bounds__(32)
    place(T *qkv, const int *positions, const int *table, Kept *keys, Kept *values, unsigned char *key_scales,
          unsigned char *value_scales, const float *cosines, const float *sines, const T *q_scale, const T *k_scale,
          const __grid_constant__ AttentionCall call) {
  const long long head = blockIdx.x, row = blockIdx.y, dim = call.dim;
  const long long position = positions[row];
  if (position < 0 || position >= call.capacity) return;
  T *from = qkv + row * call.width + head * dim;
  const bool is_query = head < call.heads, is_value = head >= call.heads + call.kv_heads;
  const long long kv_head = is_query ? 0 : (head - call.heads) % call.kv_heads;
  const long long start = start_of(table, row, kv_head, position, call) + position * dim;
  if constexpr (same_type<T, Kept>) {
    T *to = is_query ? from : (is_value ? values : keys) + start;
    if (is_value) {
      for (long long i = threadIdx.x; i < dim; i += 32) to[i] = from[i];
      return;
    }
    turn_head(from, is_query ? q_scale : k_scale, cosines, sines, position, call,
              [&](long long i, T element) { to[i] = element; });
  } else {
    __shared__ float elements[kMaxDim];
    const auto put = [&](long long i, T element) {
      if (is_query)
        from[i] = element;
      else
        elements[i] = widen(element);
    };
    if (is_value) {
      for (long long i = threadIdx.x; i < dim; i += 32) put(i, from[i]);
    } else {
      turn_head(from, is_query ? q_scale : k_scale, cosines, sines, position, call, put);
    }
    if (is_query) return;
    unsigned char *scales = (is_value ? value_scales : key_scales) + scales_of(table, row, kv_head, position, call);
    encode_head(elements, dim, true, (is_value ? values : keys) + start, scales + position);
  }
}

// Keys and values of the first `count` positions of row 0's sequence, as (kv_heads, count, dim) each, codes as what
// they stand for. A block of threads for each chunk in x, head in y, and of keys or values in z.
template <class T, class Kept = T>
__global__ void __launch_bounds__(kThreads)
    gather(const Kept *keys, const Kept *values, const unsigned char *key_scales, const unsigned char *value_scales,
           const int *table, T *all_keys, T *all_values, long long count, const __grid_constant__ AttentionCall call) {
  const long long first = static_cast<long long>(blockIdx.x) * kPart, kv_head = blockIdx.y, dim = call.dim;
  const long long left = (count - first < kPart ? count - first : kPart) * dim;
  const Kept *from = (blockIdx.z == 0 ? keys : values) + start_of(table, 0, kv_head, first, call) + first * dim;
  T *to = (blockIdx.z == 0 ? all_keys : all_values) + (kv_head * count + first) * dim;
  if constexpr (same_type<T, Kept>) {
    constexpr int N = per_load<T>();
    for (long long i = threadIdx.x * N; i < left; i += kThreads * N) store_pack<N>(to + i, load_pack<N>(from + i));
  } else {
    const unsigned char *scales =
        (blockIdx.z == 0 ? key_scales : value_scales) + scales_of(table, 0, kv_head, first, call) + first;
    for (long long i = threadIdx.x * kCount; i < left; i += kThreads * kCount) {
      const float scale = scale_of(scales[static_cast<unsigned>(i) / static_cast<unsigned>(dim)]);
      float numbers[kCount];
      widen_pack(load_pack<kCount>(from + i), numbers);
      Pack<T, kCount> pack;
#pragma unroll
      for (int j = 0; j < kCount; ++j) pack.v[j] = convert<T>::from(numbers[j] * scale);
      *reinterpret_cast<Pack<T, kCount> *>(to + i) = pack;
    }
  }
}

}  // namespace pk
