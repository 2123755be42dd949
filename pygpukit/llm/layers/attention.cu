// attention.cu: a row's heads rotated and put into the cache, and what the row sees of it.
//
// Keys are taken in parts of kPart positions. Each part gives a largest score, a sum and a weighted sum; parts are merged
// in their order, by one block or by a second launch: the same operations, the same bits. A row's bits depend on its own
// sequence only.
#include "numeric.cuh"

namespace pk {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kPart = 256;     // positions of a part
constexpr int kLanes = 8;      // threads that share a key
constexpr int kCount = 8;      // elements of a head that a thread takes at once
constexpr int kMostDim = 256;  // of a head

struct AttentionCall {
  long long heads, kv_heads, dim, capacity;  // capacity: positions of a sequence in the cache
  long long window;                          // keys that a row sees, itself included; 0: all
  long long width;                           // elements of a row of qkv, or of queries alone
  int rows, parts, rotates, normalises;
  float scale, epsilon;
};

__device__ __forceinline__ float over_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

// A warp for each head of a row: query heads stay in qkv, keys and values go into the cache.
template <class T>
__global__ void __launch_bounds__(32)
    place(T *qkv, const int *positions, const int *slots, T *keys, T *values, const float *cosines, const float *sines,
          const T *q_scale, const T *k_scale, const __grid_constant__ AttentionCall call) {
  const long long head = blockIdx.x, row = blockIdx.y, dim = call.dim, half = dim / 2;
  const long long position = positions[row];
  if (position < 0 || position >= call.capacity) return;
  T *from = qkv + row * call.width + head * dim;
  const bool is_query = head < call.heads, is_value = head >= call.heads + call.kv_heads;
  const long long kv_head = is_query ? 0 : (head - call.heads) % call.kv_heads;
  T *to = is_query ? from
                   : (is_value ? values : keys) +
                         ((slots[row] * call.kv_heads + kv_head) * call.capacity + position) * dim;
  if (is_value) {
    for (long long i = threadIdx.x; i < dim; i += 32) to[i] = from[i];
    return;
  }
  float factor = 1.0f;
  if (call.normalises) {
    float squares = 0.0f;
    for (long long i = threadIdx.x; i < dim; i += 32) {
      const float value = widen(from[i]);
      squares = fmaf(value, value, squares);
    }
    factor = 1.0f / sqrtf(over_warp(squares) / static_cast<float>(dim) + call.epsilon);
    __syncwarp();  // all have read before one writes
  }
  const T *scale = is_query ? q_scale : k_scale;
  for (long long i = threadIdx.x; i < half; i += 32) {
    float a = widen(from[i]), b = widen(from[i + half]);
    if (call.normalises) {
      a = widen(convert<T>::from(a * factor * widen(scale[i])));
      b = widen(convert<T>::from(b * factor * widen(scale[i + half])));
    }
    if (call.rotates) {
      const float c = cosines[position * half + i], s = sines[position * half + i];
      const float turned = a * c - b * s;
      b = b * c + a * s;
      a = turned;
    }
    to[i] = convert<T>::from(a);
    to[i + half] = convert<T>::from(b);
  }
}

// Of one query head after some parts: largest score, sum of weights, and, a thread for each, the sum of weighted values.
struct State {
  float largest, sum, value[(kMostDim + kThreads - 1) / kThreads];
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

template <class T>
__device__ __forceinline__ void load_piece(const T *from, float (&to)[kCount]) {
  struct alignas(16) Words {
    T v[16 / sizeof(T)];
  };
  constexpr int kWords = kCount * sizeof(T) / 16;
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    const Words words = reinterpret_cast<const Words *>(from)[w];
#pragma unroll
    for (int i = 0; i < 16 / static_cast<int>(sizeof(T)); ++i) to[w * (16 / sizeof(T)) + i] = widen(words.v[i]);
  }
}

template <int kHeads>
struct Shared {
  float query[kHeads][kMostDim];
  float score[kHeads][kPart];
  float largest[kHeads], sum[kHeads];
  float partial[kThreads][kCount + 1];  // of one head at a time; padded against bank conflicts
  float value[kHeads][kMostDim];
};

// The keys first .. end - 1 for kHeads query heads that share them: shared.largest, .sum and .value.
template <class T, int kHeads>
__device__ void one_part(const T *keys, const T *values, long long first, long long end, int heads, long long dim,
                         float scale, Shared<kHeads> &shared) {
  const int count = static_cast<int>(end - first), pieces = static_cast<int>(dim) / kCount;
  const int group = threadIdx.x / kLanes, member = threadIdx.x % kLanes;
  for (int key = group; key < kPart; key += kThreads / kLanes) {
    float score[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) score[h] = 0.0f;
    if (key < count) {
      const T *row = keys + (first + key) * dim;
      for (int piece = member; piece < pieces; piece += kLanes) {
        float element[kCount];
        load_piece(row + piece * kCount, element);
#pragma unroll
        for (int h = 0; h < kHeads; ++h)
#pragma unroll
          for (int i = 0; i < kCount; ++i)
            score[h] = fmaf(element[i], shared.query[h][piece * kCount + i], score[h]);
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
#pragma unroll
      for (int lanes = kLanes / 2; lanes > 0; lanes /= 2)
        score[h] += __shfl_xor_sync(0xffffffffu, score[h], lanes);
      if (member == 0) shared.score[h][key] = key < count ? score[h] * scale : -__uint_as_float(0x7f800000u);
    }
  }
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
  // Values: as many groups of threads as there are for a row's pieces; each takes every so manieth key.
  const int groups = kThreads / pieces, mine = threadIdx.x / pieces, piece = threadIdx.x % pieces;
  float total[kHeads][kCount];
#pragma unroll
  for (int h = 0; h < kHeads; ++h)
#pragma unroll
    for (int i = 0; i < kCount; ++i) total[h][i] = 0.0f;
  if (mine < groups) {
    for (int key = mine; key < count; key += groups) {
      float element[kCount];
      load_piece(values + (first + key) * dim + piece * kCount, element);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        const float weight = shared.score[h][key];
#pragma unroll
        for (int i = 0; i < kCount; ++i) total[h][i] = fmaf(weight, element[i], total[h][i]);
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
    if (static_cast<int>(threadIdx.x) + i * kThreads < dim) state.value[i] = shared.value[head][threadIdx.x + i * kThreads];
  return state;
}

template <class T>
__device__ __forceinline__ void put(T *out, const State &state, long long dim) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(state.value) / sizeof(float)); ++i)
    if (static_cast<int>(threadIdx.x) + i * kThreads < dim)
      out[threadIdx.x + i * kThreads] = convert<T>::from(state.value[i] / state.sum);
}

// A block for a row, kHeads of the query heads that share a key head, and a part of the keys, or (kWhole) all parts.
template <class T, int kHeads, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    attend(const T *qkv, const int *positions, const int *slots, const T *keys, const T *values, float *parts, T *out,
           const __grid_constant__ AttentionCall call) {
  __shared__ Shared<kHeads> shared;
  const long long row = blockIdx.x, dim = call.dim, group = call.heads / call.kv_heads;
  const long long batches = (group + kHeads - 1) / kHeads;
  const long long kv_head = blockIdx.y / batches, begin = blockIdx.y % batches * kHeads;
  const int heads = static_cast<int>(group - begin < kHeads ? group - begin : kHeads);
  const long long first_head = kv_head * group + begin, position = positions[row];
  if (position < 0 || position >= call.capacity) return;
  const long long low = call.window > 0 && position + 1 > call.window ? position + 1 - call.window : 0;
  const long long first_part = low / kPart, last_part = position / kPart;
  if (!kWhole && (blockIdx.z < first_part || blockIdx.z > last_part)) return;
  const T *query = qkv + row * call.width + first_head * dim;
  for (long long i = threadIdx.x; i < kHeads * dim; i += kThreads)
    shared.query[i / dim][i % dim] = i / dim < heads ? widen(query[i]) : 0.0f;
  __syncthreads();
  const long long start = (slots[row] * call.kv_heads + kv_head) * call.capacity * dim;
  State whole[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) clear(whole[h]);
  for (long long part = kWhole ? first_part : blockIdx.z; part <= (kWhole ? last_part : blockIdx.z); ++part) {
    const long long first = part * kPart > low ? part * kPart : low;
    const long long end = (part + 1) * kPart < position + 1 ? (part + 1) * kPart : position + 1;
    one_part<T, kHeads>(keys + start, values + start, first, end, heads, dim, call.scale, shared);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= heads) break;
      const State found = state_of(shared, h, dim);
      if (kWhole) {
        merge(whole[h], found);
        continue;
      }
      float *to = parts + ((row * call.heads + first_head + h) * call.parts + part) * (dim + 2);
      if (threadIdx.x == 0) {
        to[0] = found.largest;
        to[1] = found.sum;
      }
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(found.value) / sizeof(float)); ++i)
        if (static_cast<int>(threadIdx.x) + i * kThreads < dim) to[2 + threadIdx.x + i * kThreads] = found.value[i];
    }
    __syncthreads();
  }
  if (!kWhole) return;
#pragma unroll
  for (int h = 0; h < kHeads; ++h)
    if (h < heads) put(out + (row * call.heads + first_head + h) * dim, whole[h], dim);
}

// The parts of one head of a row, merged.
template <class T>
__global__ void __launch_bounds__(kThreads)
    merge_parts(const float *parts, const int *positions, T *out, const __grid_constant__ AttentionCall call) {
  const long long head = blockIdx.x, row = blockIdx.y, dim = call.dim, position = positions[row];
  if (position < 0 || position >= call.capacity) return;
  const long long low = call.window > 0 && position + 1 > call.window ? position + 1 - call.window : 0;
  State whole;
  clear(whole);
  for (long long part = low / kPart; part <= position / kPart; ++part) {
    const float *from = parts + ((row * call.heads + head) * call.parts + part) * (dim + 2);
    State found;
    clear(found);
    found.largest = from[0];
    found.sum = from[1];
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(found.value) / sizeof(float)); ++i)
      if (static_cast<int>(threadIdx.x) + i * kThreads < dim) found.value[i] = from[2 + threadIdx.x + i * kThreads];
    merge(whole, found);
  }
  put(out + (row * call.heads + head) * dim, whole, dim);
}

}  // namespace pk
