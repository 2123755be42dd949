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

// A step: a block for a row, a query head or up to kHeads that share a key head, and a part of the keys. The row's own
// key and value are rotated and put into the cache by the blocks that see them. counters: zeros, one for a row's head.
template <class T, int kHeads>
__global__ void __launch_bounds__(kThreads)
    attend_step(const T *qkv, const int *positions, const int *slots, T *keys, T *values, const float *cosines,
                const float *sines, const T *q_scale, const T *k_scale, float *parts, int *counters, T *out,
                const __grid_constant__ AttentionCall call) {
  __shared__ Shared<kHeads> shared;
  __shared__ Own own;
  let_next_begin();
  await_previous();
  const long long row = blockIdx.x, dim = call.dim, group = call.heads / call.kv_heads, part = blockIdx.z;
  const long long position = positions[row], first_head = blockIdx.y, kv_head = first_head / group;
  if (position < 0 || position >= call.capacity) return;
  const Seen seen = seen_from(position, call);
  if (part < seen.first || part > seen.last) return;
  const long long blocks = seen.last - seen.first + 1, begin = first_head % group;
  // Heads that share keys read them once where there are blocks enough without; each for itself where there are not.
  const bool together = gridDim.x * call.kv_heads * ((group + kHeads - 1) / kHeads) * blocks >= call.enough;
  if (together && begin % kHeads != 0) return;
  const int heads = !together ? 1 : static_cast<int>(group - begin < kHeads ? group - begin : kHeads);
  const long long start = (slots[row] * call.kv_heads + kv_head) * call.capacity * dim;
  const bool sees_own = call.places && part == seen.last;
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
  const long long first = part * kPart > seen.low ? part * kPart : seen.low;
  if (threadIdx.x == 0) own.at = sees_own ? static_cast<int>(position - first) : -1;
  __syncthreads();
  part_of<T, kHeads>(keys + start, values + start, part, seen, position, heads, call, shared, own);
  const long long place = row * call.heads + first_head;
  if (blocks == 1) {
#pragma unroll
    for (int h = 0; h < kHeads; ++h)
      if (h < heads) put(out + (place + h) * dim, state_of(shared, h, dim), dim);
    return;
  }
  for (int h = 0; h < heads; ++h)
    write_part(parts + ((place + h) * call.parts + part) * (dim + 2), state_of(shared, h, dim), dim);
  if (!is_last(counters + place, blocks)) return;
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
