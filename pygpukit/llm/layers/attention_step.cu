// attention_step.cu: attention of the next row of each of some sequences: rotation, cache, parts and their sum at once.
#include "key_parts.cuh"
#include "overlap.cuh"

namespace pk {

constexpr int kMerged = 4;  // parts that are read before the first is merged

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

// Whether all other blocks of a row's heads have ended; the counter is zero again then. What they wrote can be read.
__device__ __forceinline__ bool is_last(int *counter, long long blocks) {
  __shared__ int last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1) == blocks - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

// A step: blocks in y are query heads, blocks in z share the parts of the keys. Up to kHeads heads that share a key
// head are taken together, by the blocks of all of them, where there are blocks enough without: keys are read once
// then. The row's own key and value are rotated and put into the cache by those that see them. counters: zeros, one for
// a row's head.
template <class T, int kHeads>
__global__ void __launch_bounds__(kThreads, kHeads > 4 ? 3 : 4)
    attend_step(const T *qkv, const int *positions, const int *slots, T *keys, T *values, const float *cosines,
                const float *sines, const T *q_scale, const T *k_scale, float *parts, int *counters, T *out,
                const __grid_constant__ AttentionCall call) {
  __shared__ Shared<kHeads> shared;
  __shared__ Own own;
  let_next_begin();
  await_previous();
  const long long row = blockIdx.x, dim = call.dim, group = call.heads / call.kv_heads;
  const long long position = positions[row], kv_head = blockIdx.y / group, member = blockIdx.y % group;
  if (position < 0 || position >= call.capacity) return;
  const Seen seen = seen_from(position, call);
  const long long count = seen.last - seen.first + 1, batches = (group + kHeads - 1) / kHeads;
  const bool together = gridDim.x * call.kv_heads * batches * count >= call.enough;
  const long long sharing = together ? kHeads : 1, begin = member / sharing * sharing;
  const int heads = static_cast<int>(group - begin < sharing ? group - begin : sharing);
  const long long share = (member - begin) * gridDim.z + blockIdx.z, shares = heads * gridDim.z;  // of the parts
  if (share >= count) return;
  const long long first_head = kv_head * group + begin;
  const long long start = (slots[row] * call.kv_heads + kv_head) * call.capacity * dim;
  const bool sees_own = call.places && (count - 1) % shares == share;
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
                  if (begin == 0) keys[start + position * dim + i] = element;
                });
    } else if (sees_own) {
      const T *value = of_row + (call.heads + call.kv_heads + kv_head) * dim;
      for (long long i = threadIdx.x % 32; i < dim; i += 32) {
        own.value[i] = widen(value[i]);
        if (begin == 0) values[start + position * dim + i] = value[i];
      }
    }
  }
  __syncthreads();
  const long long place = row * call.heads + first_head;
  for (long long number = share; number < count; number += shares) {
    const long long part = seen.first + number, first = part * kPart > seen.low ? part * kPart : seen.low;
    const int own_at = call.places && part == seen.last ? static_cast<int>(position - first) : -1;
    part_of<T, kHeads, true>(keys + start, values + start, part, seen, position, heads, call, shared, &own, own_at);
    if (count == 1) break;
    for (int h = 0; h < heads; ++h)
      write_part(parts + ((place + h) * call.parts + part) * (dim + 2), state_of(shared, h, dim), dim);
  }
  if (count == 1) {
    for (int h = 0; h < heads; ++h) put(out + (place + h) * dim, state_of(shared, h, dim), dim);
    return;
  }
  if (!is_last(counters + place, count < shares ? count : shares)) return;
  for (int h = 0; h < heads; ++h) {
    const float *from = parts + (place + h) * call.parts * (dim + 2);
    State whole;
    clear(whole);
    for (long long next = seen.first; next <= seen.last; next += kMerged) {
      State found[kMerged];
#pragma unroll
      for (int i = 0; i < kMerged; ++i)
        if (next + i <= seen.last) found[i] = read_part(from + (next + i) * (dim + 2), dim);
#pragma unroll
      for (int i = 0; i < kMerged; ++i)
        if (next + i <= seen.last) merge(whole, found[i]);
    }
    put(out + (place + h) * dim, whole, dim);
  }
}

}  // namespace pk
