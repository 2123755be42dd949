// attention_step.cu: attention of the next row of each of some sequences: rotation, cache, parts and their sum at once.
#include "key_parts.cuh"
#include "overlap.cuh"

namespace pk {

constexpr int kMerged = 16;  // parts that are read before the first is merged

__device__ __forceinline__ void write_part(float *to, const State &state, long long dim) {
  if (threadIdx.x == 0) {
    to[0] = state.largest;
    to[1] = state.sum;
  }
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(state.value) / sizeof(float)); ++i)
    if (static_cast<int>(threadIdx.x) + i * kThreads < dim) to[2 + threadIdx.x + i * kThreads] = state.value[i];
}

__device__ __forceinline__ State read_part(const float *from, long long dim) {
  State state;
  clear(state);
  state.largest = from[0];
  state.sum = from[1];
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(state.value) / sizeof(float)); ++i)
    if (static_cast<int>(threadIdx.x) + i * kThreads < dim) state.value[i] = from[2 + threadIdx.x + i * kThreads];
  return state;
}

// A step: blocks in y are query heads, blocks in z parts of the keys. A part is as many chunks as leave kParts parts or
// fewer, which follows from the row's position alone. Up to kHeads heads that share a key head are taken together, by
// the blocks of the first of them, where there are blocks enough without: keys are read once then. The row's own key
// and value are rotated and put into the cache by those that see them. Kept: what the cache has, T or codes with
// scales; of the own key and value, too, it is what the codes stand for that counts. counters: zeros, one for a row's
// head.
template <class T, int kHeads, class Kept = T>
__global__ void __launch_bounds__(kThreads, 4)
    attend_step(const T *qkv, const int *positions, const int *table, Kept *keys, Kept *values,
                unsigned char *key_scales, unsigned char *value_scales, const float *cosines, const float *sines,
                const T *q_scale, const T *k_scale, const float *sinks, float *parts, int *counters, T *out,
                const __grid_constant__ AttentionCall call) {
  constexpr bool kCoded = !same_type<T, Kept>;
  __shared__ Shared<kHeads> shared;
  __shared__ Own own;
  await_previous();
  const long long row = blockIdx.x, dim = call.dim, group = call.heads / call.kv_heads;
  const long long position = positions[row], kv_head = blockIdx.y / group, member = blockIdx.y % group;
  if (position < 0 || position >= call.capacity) return;
  const Seen seen = seen_from(position, call);
  const int chunks = static_cast<int>(seen.last - seen.first) + 1, each = (chunks + kParts - 1) / kParts;
  const int count = (chunks + each - 1) / each, number = blockIdx.z;
  const long long batches = (group + kHeads - 1) / kHeads;
  const bool together = gridDim.x * call.kv_heads * batches * count >= call.enough;
  const long long sharing = together ? kHeads : 1, begin = member / sharing * sharing;
  if (number >= count || member != begin) return;
  const int heads = static_cast<int>(group - begin < sharing ? group - begin : sharing);
  const long long first_head = kv_head * group + begin;
  const long long first = seen.first + static_cast<long long>(number) * each;
  const long long last = first + each - 1 < seen.last ? first + each - 1 : seen.last;
  const bool sees_own = call.places && number == count - 1;
  const long long own_start = sees_own ? start_of(table, row, kv_head, position, call) : 0;
  // Looked up before it is needed, as each further one below: a chunk's keys do not wait for it.
  long long start = start_of(table, row, kv_head, first * kPart, call);
  const auto scales = [&](long long at) { return kCoded ? scales_of(table, row, kv_head, at, call) : 0; };
  const T *of_row = qkv + row * call.width;
  for (int item = threadIdx.x / 32; item < heads + 2; item += kWarps) {
    const bool is_query = item < heads;
    if (is_query && !call.places) {
      for (long long i = threadIdx.x % 32; i < dim; i += 32)
        shared.query[item][i] = widen(of_row[(first_head + item) * dim + i]);
    } else if (is_query) {
      turn_head(of_row + (first_head + item) * dim, q_scale, cosines, sines, position, call,
                [&](long long i, T element) { shared.query[item][i] = widen(element); });
    } else if (sees_own && item == heads) {
      turn_head(of_row + (call.heads + kv_head) * dim, k_scale, cosines, sines, position, call,
                [&](long long i, T element) {
                  own.key[i] = widen(element);
                  if constexpr (!kCoded)
                    if (begin == 0) keys[own_start + position * dim + i] = element;
                });
      if constexpr (kCoded)
        encode_head(own.key, dim, begin == 0, keys + own_start + position * dim,
                    key_scales + scales(position) + position);
    } else if (sees_own) {
      const T *value = of_row + (call.heads + call.kv_heads + kv_head) * dim;
      for (long long i = threadIdx.x % 32; i < dim; i += 32) {
        own.value[i] = widen(value[i]);
        if constexpr (!kCoded)
          if (begin == 0) values[own_start + position * dim + i] = value[i];
      }
      if constexpr (kCoded)
        encode_head(own.value, dim, begin == 0, values + own_start + position * dim,
                    value_scales + scales(position) + position);
    }
  }
  __syncthreads();
  State whole[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) clear(whole[h]);
  for (long long chunk = first; chunk <= last; ++chunk) {
    const long long next_start = chunk < last ? start_of(table, row, kv_head, (chunk + 1) * kPart, call) : 0;
    const int own_at = sees_own && chunk == seen.last ? static_cast<int>(position % kPart) : -1;
    const long long scale = scales(chunk * kPart);
    if (heads == 1) {
      chunk_of<Kept, kHeads, 1>(keys + start, values + start, key_scales + scale, value_scales + scale, chunk, seen,
                                position, heads, call, shared, own, own_at);
    } else {
      chunk_of<Kept, kHeads, kHeads>(keys + start, values + start, key_scales + scale, value_scales + scale, chunk,
                                     seen, position, heads, call, shared, own, own_at);
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h)
      if (h < heads) merge(whole[h], state_of(shared, h, dim));
    __syncthreads();
    start = next_start;
  }
  const long long place = row * call.heads + first_head;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (h >= heads) break;
    if (count == 1) {
      if (call.sinks) add_sink(whole[h], sinks[first_head + h]);
      put(out + (place + h) * dim, whole[h], dim);
    } else {
      write_part(parts + ((place + h) * call.parts + number) * (dim + 2), whole[h], dim);
    }
  }
  if (count == 1 || !is_last(counters + place, count)) return;
  for (int h = 0; h < heads; ++h) {
    const float *from = parts + (place + h) * call.parts * (dim + 2);
    State sum;
    clear(sum);
    for (int next = 0; next < count; next += kMerged) {
      State states[kMerged];
#pragma unroll
      for (int i = 0; i < kMerged; ++i)
        if (next + i < count) states[i] = read_part(from + (next + i) * (dim + 2), dim);
#pragma unroll
      for (int i = 0; i < kMerged; ++i)
        if (next + i < count) merge(sum, states[i]);
    }
    if (call.sinks) add_sink(sum, sinks[first_head + h]);
    put(out + (place + h) * dim, sum, dim);
  }
}

}  // namespace pk
