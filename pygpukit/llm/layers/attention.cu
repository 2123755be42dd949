// attention.cu: the heads of a prompt's rows rotated and put into the cache, and what each row sees of it.
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

// A block for a row of a prompt, whose keys are in the cache, and kHeads of the query heads that share a key head.
template <class T, int kHeads>
__global__ void __launch_bounds__(kThreads)
    attend(const T *qkv, const int *positions, const int *slots, const T *keys, const T *values, T *out,
           const __grid_constant__ AttentionCall call) {
  __shared__ Shared<kHeads> shared;
  const long long row = blockIdx.x, dim = call.dim, group = call.heads / call.kv_heads;
  const long long batches = (group + kHeads - 1) / kHeads;
  const long long kv_head = blockIdx.y / batches, begin = blockIdx.y % batches * kHeads;
  const int heads = static_cast<int>(group - begin < kHeads ? group - begin : kHeads);
  const long long first_head = kv_head * group + begin, position = positions[row];
  if (position < 0 || position >= call.capacity) return;
  const T *query = qkv + row * call.width + first_head * dim;
  for (long long i = threadIdx.x; i < heads * dim; i += kThreads) shared.query[i / dim][i % dim] = widen(query[i]);
  __syncthreads();
  const Seen seen = seen_from(position, call);
  const long long start = (slots[row] * call.kv_heads + kv_head) * call.capacity * dim;
  State whole[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) clear(whole[h]);
  for (long long part = seen.first; part <= seen.last; ++part) {
    part_of<T, kHeads, false>(keys + start, values + start, part, seen, position, heads, call, shared, nullptr, -1);
#pragma unroll
    for (int h = 0; h < kHeads; ++h)
      if (h < heads) merge(whole[h], state_of(shared, h, dim));
    __syncthreads();
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h)
    if (h < heads) put(out + (row * call.heads + first_head + h) * dim, whole[h], dim);
}

}  // namespace pk
