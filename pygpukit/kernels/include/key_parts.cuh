// key_parts.cuh: what a row of a model sees of a cache of keys and values.
//
// Keys are taken in chunks of kPart positions. Each gives a largest score, a sum and a weighted sum, which are merged
// in their order: a row's bits depend on its own sequence only.
#pragma once
#include "key_codes.cuh"

namespace pk {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kPart = 64;     // positions of a chunk
constexpr int kParts = 32;    // of a row's keys, at most
constexpr int kLanes = 8;     // threads that share a key
constexpr int kCount = 8;     // elements of a head that a thread takes at once
constexpr int kMaxDim = 256;  // of a head

struct AttentionCall {
  long long heads, kv_heads, dim, capacity;  // capacity: positions that a sequence can have
  long long block, blocks;                   // positions of a block of the cache, and how many a sequence can have
  long long window;                          // keys that a row sees, itself included; 0: all
  long long chunk;                           // a row sees keys from the last multiple of this on; 0: all
  long long width;                           // elements of a row of qkv, or of queries alone
  int rows, parts, normalises;
  int rotary;                 // elements of a head that are rotated, its first: 0 to dim
  float scale, cap, epsilon;  // cap: c of the soft cap c * tanh(score / c); 0: none
  int places;                 // whether qkv has keys and values, which are not in the cache yet
  int enough;                 // blocks that keep a device busy: with fewer, heads that share keys go apart
  int sinks;                  // whether a head has a score without a value
};

// Where the scale of a head's position 0 would lie in the cache if all of its sequence were where the block with
// `position` is. table: of each row the blocks of its sequence. A block holds whole chunks, or all positions of a
// sequence.
__device__ __forceinline__ long long scales_of(const int *table, long long row, long long kv_head, long long position,
                                               const AttentionCall &call) {
  const unsigned number = static_cast<unsigned>(position) / static_cast<unsigned>(call.block);
  return (table[row * call.blocks + number] * call.kv_heads + kv_head - number) * call.block;
}

// The same of its elements.
__device__ __forceinline__ long long start_of(const int *table, long long row, long long kv_head, long long position,
                                              const AttentionCall &call) {
  return scales_of(table, row, kv_head, position, call) * call.dim;
}

__device__ __forceinline__ float over_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

// One head by a warp, normalised and rotated as the call says: put(i, element). from may be where elements are put.
template <class T, class F>
__device__ __forceinline__ void turn_head(const T *from, const T *scale, const float *cosines, const float *sines,
                                          long long position, const AttentionCall &call, F put) {
  const long long dim = call.dim, half = call.rotary / 2;
  const int lane = threadIdx.x % 32;
  float factor = 1.0f;
  if (call.normalises) {
    float squares = 0.0f;
    for (long long i = lane; i < dim; i += 32) {
      const float value = widen(from[i]);
      squares = fmaf(value, value, squares);
    }
    factor = 1.0f / sqrtf(over_warp(squares) / static_cast<float>(dim) + call.epsilon);
    __syncwarp();  // all have read before one writes
  }
  const auto element = [&](long long i) {
    const float value = widen(from[i]);
    return call.normalises ? widen(convert<T>::from(value * factor * widen(scale[i]))) : value;
  };
  for (long long i = lane; i < half; i += 32) {
    const float a = element(i), b = element(i + half);
    const float c = cosines[position * half + i], s = sines[position * half + i];
    put(i, convert<T>::from(a * c - b * s));
    put(i + half, convert<T>::from(b * c + a * s));
  }
  for (long long i = call.rotary + lane; i < dim; i += 32) put(i, convert<T>::from(element(i)));
}

// A score as the call scales and caps it.
__device__ __forceinline__ float scaled(float score, const AttentionCall &call) {
  score *= call.scale;
  return call.cap == 0.0f ? score : call.cap * tanhf(score / call.cap);
}

// Of one query head after some chunks: largest score, sum of weights, and, a thread for each, the sum of weighted
// values.
struct State {
  float largest, sum, value[(kMaxDim + kThreads - 1) / kThreads];
};

__device__ __forceinline__ void clear(State &state) {
  state.largest = -__uint_as_float(0x7f800000u);
  state.sum = 0.0f;
#pragma unroll
  for (float &value : state.value) value = 0.0f;
}

__device__ __forceinline__ void merge(State &state, const State &part) {
  if (part.sum == 0.0f) return;
  const float largest = fmaxf(state.largest, part.largest);
  const float before = state.sum == 0.0f ? 0.0f : expf(state.largest - largest), now = expf(part.largest - largest);
  state.largest = largest;
  state.sum = __fadd_rn(__fmul_rn(state.sum, before), __fmul_rn(part.sum, now));
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(state.value) / sizeof(float)); ++i)
    state.value[i] = __fadd_rn(__fmul_rn(state.value[i], before), __fmul_rn(part.value[i], now));
}

// A score that takes its part of the weights and has no value.
__device__ __forceinline__ void add_sink(State &state, float score) {
  State sink;
  clear(sink);
  sink.largest = score;
  sink.sum = 1.0f;
  merge(state, sink);
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

// kCount elements of a head, on their way from memory.
template <class T>
struct Piece {
  static constexpr int kLoad = 16 / static_cast<int>(sizeof(T)), kEach = kLoad < kCount ? kLoad : kCount;
  static constexpr int kLoads = kCount / kEach;
  Held<T, kEach> loads[kLoads];

  __device__ __forceinline__ void load(const T *from) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) loads[i].load(from + i * kEach);
  }
  __device__ __forceinline__ void widen_to(float (&element)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      float some[kEach];
      widen_pack(loads[i].pack(), some);
#pragma unroll
      for (int j = 0; j < kEach; ++j) element[i * kEach + j] = some[j];
    }
  }
};

template <int kHeads>
struct alignas(16) Shared {
  float query[kHeads][kMaxDim];
  float score[kHeads][kPart];
  float largest[kHeads], sum[kHeads];
  float partial[kThreads][kCount + 1];  // of one head at a time; padded against bank conflicts
  float value[kHeads][kMaxDim];
};

// The key and the value of a step's row, which other blocks cannot see in the cache yet.
struct Own {
  float key[kMaxDim], value[kMaxDim];
};

// What a row sees: keys low .. position, of the chunks first .. last.
struct Seen {
  long long low, first, last;
};

__device__ __forceinline__ Seen seen_from(long long position, const AttentionCall &call) {
  long long low = call.window > 0 && position + 1 > call.window ? position + 1 - call.window : 0;
  if (call.chunk > 0 && low < position / call.chunk * call.chunk) low = position / call.chunk * call.chunk;
  return {low, low / kPart, position / kPart};
}

// The keys of a chunk for the first of kAll query heads that share them, at most kHeads: shared.largest, .sum and
// .value. key_scales, value_scales: of codes, from the same position on. own, own_at: the own key and its place after
// the chunk's first position, below 0 where it is in another chunk.
template <class T, int kAll, int kHeads>
__device__ __forceinline__ void chunk_of(const T *keys, const T *values, const unsigned char *key_scales,
                                         const unsigned char *value_scales, long long chunk, const Seen &seen,
                                         long long position, int heads, const AttentionCall &call, Shared<kAll> &shared,
                                         const Own &own, int own_at) {
  constexpr bool kCoded = same_type<T, e4m3_t>;
  constexpr int kGroups = kThreads / kLanes;
  // Keys that are read at once: as many bytes of each type but codes, of which a chunk has no more.
  constexpr int kTogether = sizeof(T) == 1 ? 4 : 8 / static_cast<int>(sizeof(T));
  static_assert(kPart % (kGroups * kTogether) == 0, "a chunk is whole batches");
  // Of a kernel for single heads, which has registers left: pieces of a key, and keys whose values are read at once.
  constexpr bool kSingle = kAll == 1;
  constexpr int kSpans = kSingle ? 2 : 1, kValues = kSingle ? 2 * kTogether : kTogether;
  const long long first = chunk * kPart > seen.low ? chunk * kPart : seen.low, dim = call.dim;
  const long long end = (chunk + 1) * kPart < position + 1 ? (chunk + 1) * kPart : position + 1;
  const int own_key = own_at < 0 ? own_at : own_at - static_cast<int>(first - chunk * kPart);
  const int count = static_cast<int>(end - first), pieces = static_cast<int>(dim) / kCount;
  const int group = threadIdx.x / kLanes, member = threadIdx.x % kLanes;
  // Values: as many groups of threads as there are for a row's pieces; each takes every so manieth key.
  const int groups = kThreads / pieces, mine = threadIdx.x / pieces, piece = threadIdx.x % pieces;
  Piece<T> held_values[kValues];
  unsigned char held_scales[kCoded ? kValues : 1];
  const auto read_values = [&](int begin) {
#pragma unroll
    for (int t = 0; t < kValues; ++t) {
      const int key = begin + t * groups;
      if (key < count && key != own_key) {
        held_values[t].load(values + (first + key) * dim + piece * kCount);
        if constexpr (kCoded) held_scales[t] = value_scales[first + key];
      }
    }
  };
  for (int begin = 0; begin < kPart; begin += kGroups * kTogether) {
    float score[kTogether][kHeads];
#pragma unroll
    for (int t = 0; t < kTogether; ++t)
#pragma unroll
      for (int h = 0; h < kHeads; ++h) score[t][h] = 0.0f;
    float factor[kTogether];
    if constexpr (kCoded) {
#pragma unroll
      for (int t = 0; t < kTogether; ++t) {
        const int key = begin + t * kGroups + group;
        factor[t] = key < count && key != own_key ? scale_of(key_scales[first + key]) : 1.0f;
      }
    }
    if (begin < count) {
      for (int from = member; from < pieces; from += kLanes * kSpans) {
        Piece<T> held[kSpans][kTogether];
#pragma unroll
        for (int s = 0; s < kSpans; ++s)
#pragma unroll
          for (int t = 0; t < kTogether; ++t) {
            const int key = begin + t * kGroups + group, at = from + s * kLanes;
            if (key < count && key != own_key && at < pieces) held[s][t].load(keys + (first + key) * dim + at * kCount);
          }
#pragma unroll
        for (int s = 0; s < kSpans; ++s) {
          const int at = from + s * kLanes;
          if (at >= pieces) break;
#pragma unroll
          for (int t = 0; t < kTogether; ++t) {
            const int key = begin + t * kGroups + group;
            if (key >= count) break;
            float element[kCount];
            if (key == own_key) {
#pragma unroll
              for (int i = 0; i < kCount; ++i) element[i] = own.key[at * kCount + i];
            } else {
              held[s][t].widen_to(element);
            }
#pragma unroll
            for (int h = 0; h < kHeads; ++h) {
              if (h >= heads) break;
#pragma unroll
              for (int i = 0; i < kCount; ++i)
                score[t][h] = fmaf(element[i], shared.query[h][at * kCount + i], score[t][h]);
            }
          }
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
      const int key = begin + t * kGroups + group;
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        if (h >= heads) break;
#pragma unroll
        for (int lanes = kLanes / 2; lanes > 0; lanes /= 2)
          score[t][h] += __shfl_xor_sync(0xffffffffu, score[t][h], lanes);
        if constexpr (kCoded) score[t][h] *= factor[t];
        if (member == 0) shared.score[h][key] = key < count ? scaled(score[t][h], call) : -__uint_as_float(0x7f800000u);
      }
    }
  }
  if (kSingle && mine < groups) read_values(mine);  // on their way while the weights are found
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int h = warp; h < heads; h += kWarps) {
    float largest = -__uint_as_float(0x7f800000u), sum = 0.0f;
    for (int key = lane; key < kPart; key += 32) largest = fmaxf(largest, shared.score[h][key]);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    for (int key = lane; key < kPart; key += 32) {
      const float weight = key < count ? expf(shared.score[h][key] - largest) : 0.0f;
      shared.score[h][key] = weight;
      sum += weight;
    }
    sum = over_warp(sum);
    if (lane == 0) {
      shared.largest[h] = largest;
      shared.sum[h] = sum;
    }
  }
  __syncthreads();
  float total[kHeads][kCount];
#pragma unroll
  for (int h = 0; h < kHeads; ++h)
#pragma unroll
    for (int i = 0; i < kCount; ++i) total[h][i] = 0.0f;
  if (mine < groups) {
    for (int begin = mine; begin < count; begin += groups * kValues) {
      if (!kSingle || begin != mine) read_values(begin);
#pragma unroll
      for (int t = 0; t < kValues; ++t) {
        const int key = begin + t * groups;
        if (key >= count) break;
        float element[kCount], factor = 1.0f;
        if (key == own_key) {
#pragma unroll
          for (int i = 0; i < kCount; ++i) element[i] = own.value[piece * kCount + i];
        } else {
          held_values[t].widen_to(element);
          if constexpr (kCoded) factor = scale_of(held_scales[t]);
        }
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          if (h >= heads) break;
          const float weight = kCoded ? shared.score[h][key] * factor : shared.score[h][key];
#pragma unroll
          for (int i = 0; i < kCount; ++i) total[h][i] = fmaf(weight, element[i], total[h][i]);
        }
      }
    }
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (h >= heads) break;
#pragma unroll
    for (int i = 0; i < kCount; ++i) shared.partial[threadIdx.x][i] = total[h][i];
    __syncthreads();
    for (int i = threadIdx.x; i < dim; i += kThreads) {
      float value = 0.0f;
      for (int g = 0; g < groups; ++g) value += shared.partial[g * pieces + i / kCount][i % kCount];
      shared.value[h][i] = value;
    }
    __syncthreads();
  }
}

template <int kHeads>
__device__ __forceinline__ State state_of(const Shared<kHeads> &shared, int head, long long dim) {
  State state;
  clear(state);
  state.largest = shared.largest[head];
  state.sum = shared.sum[head];
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(state.value) / sizeof(float)); ++i)
    if (static_cast<int>(threadIdx.x) + i * kThreads < dim)
      state.value[i] = shared.value[head][threadIdx.x + i * kThreads];
  return state;
}

template <class T>
__device__ __forceinline__ void put(T *out, const State &state, long long dim) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(state.value) / sizeof(float)); ++i)
    if (static_cast<int>(threadIdx.x) + i * kThreads < dim)
      out[threadIdx.x + i * kThreads] = convert<T>::from(state.value[i] / state.sum);
}

}  // namespace pk
