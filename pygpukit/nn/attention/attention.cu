// attention.cu: the heads of a prompt's rows rotated and put into the cache.
#include "key_parts.cuh"

namespace pk {

// A warp for each head of a prompt's row: query heads stay in qkv, keys and values go into the cache.
template <class T>
__global__ void __launch_bounds__(32)
    place(T *qkv, const int *positions, const int *slots, T *keys, T *values, const float *cosines, const float *sines,
          const T *q_scale, const T *k_scale, const __grid_constant__ AttentionCall call) {
  const long long head = blockIdx.x, row = blockIdx.y, dim = call.dim;
  const long long position = positions[row];
  if (position < 0 || position >= call.capacity) return;
  T *from = qkv + row * call.width + head * dim;
  const bool is_query = head < call.heads, is_value = head >= call.heads + call.kv_heads;
  const long long kv_head = is_query ? 0 : (head - call.heads) % call.kv_heads;
  T *to = is_query
              ? from
              : (is_value ? values : keys) + ((slots[row] * call.kv_heads + kv_head) * call.capacity + position) * dim;
  if (is_value) {
    for (long long i = threadIdx.x; i < dim; i += 32) to[i] = from[i];
    return;
  }
  turn_head(from, is_query ? q_scale : k_scale, cosines, sines, position, call,
            [&](long long i, T element) { to[i] = element; });
}

}  // namespace pk
