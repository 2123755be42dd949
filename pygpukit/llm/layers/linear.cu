// linear.cu: norms of rows, and products of a few rows with a weight (out, in): a warp for each column of the result.
//
// A sum over K has 32 partial sums, one a lane, of the 16-byte pieces lane, lane + 32, ... in their order, which are
// added in a fixed tree. The order depends on K alone: a row has the same bits however many rows are computed with it.
//
// Weights are on their way before anything else: before the launch that made the rows has ended, before their norm, and
// those of the next column while a sum is added up. Nothing that an earlier launch wrote is read before
// await_previous().
#include "logits.cuh"
#include "overlap.cuh"
#include "rows.cuh"

namespace pk {

constexpr int kWarps = 8;  // of a block
constexpr int kThreads = 32 * kWarps;
constexpr int kAhead = 4;  // pieces of a weight's row that are read before the first is used
constexpr int kHeld = 8;   // elements of a row that a thread reads at once

using sampling::u64;

enum After { kStore, kAdd, kGelu, kGeluErf, kSilu };

struct LinearCall {
  long long n, k;  // columns of the result, of kSilu half of the weight's rows; elements of a row
  int rows, has_bias, has_shift;
  float epsilon;
};

// The pieces of a weight's row that come next, on their way.
template <class T>
struct Ahead {
  Held<T, per_load<T>()> piece[kAhead];

  __device__ __forceinline__ void load(int place, const T *row, long long number, long long pieces) {
    if (number < pieces) piece[place].keep(load_once<per_load<T>()>(row + number * per_load<T>()));
  }
  __device__ __forceinline__ void load(const T *row, long long pieces) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(i, row, threadIdx.x % 32 + 32 * i, pieces);
  }
};

__device__ __forceinline__ float over_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

// The sum over the block's threads, known to all.
__device__ __forceinline__ float over_block(float value, float (&sums)[kWarps]) {
  value = over_warp(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) value += sums[warp];
  return value;
}

// of(i, x[i]) for the elements of a row that are this thread's, in their order.
template <class F>
__device__ __forceinline__ void for_own(const float *x, long long k, F of) {
  for (long long first = threadIdx.x; first < k; first += kThreads * kHeld) {
    float value[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i) value[i] = first + i * kThreads < k ? x[first + i * kThreads] : 0.0f;
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (first + i * kThreads < k) of(first + i * kThreads, value[i]);
  }
}

// A row's bytes on their way to the cache of the device.
template <class T>
__device__ __forceinline__ void prefetch(const T *row, long long count) {
#ifndef PYGPUKIT_SIM
  constexpr int kLine = 128 / static_cast<int>(sizeof(T));
  for (long long i = threadIdx.x * static_cast<long long>(kLine); i < count;
       i += static_cast<long long>(kLine) * kThreads)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(row + i));
#endif
}

// One row, normalised: RMS norm, or layer norm where kCentered.
template <class T, bool kCentered>
__device__ __forceinline__ void norm_row(const float *x, const T *scale, const T *shift, T *out, const LinearCall &call,
                                         float (&sums)[kWarps]) {
  const float count = static_cast<float>(call.k);
  float mean = 0.0f;
  if (kCentered) {
    float sum = 0.0f;
    for_own(x, call.k, [&](long long, float value) { sum += value; });
    mean = over_block(sum, sums) / count;
  }
  float squares = 0.0f;
  for_own(x, call.k, [&](long long, float element) {
    const float value = element - mean;
    squares = fmaf(value, value, squares);
  });
  const float factor = 1.0f / sqrtf(over_block(squares, sums) / count + call.epsilon);
  for_own(x, call.k, [&](long long i, float element) {
    float value = (element - mean) * factor * widen(scale[i]);
    if (call.has_shift) value += widen(shift[i]);
    out[i] = convert<T>::from(value);
  });
}

template <class T, bool kCentered>
__global__ void __launch_bounds__(kThreads)
    norm_rows(const float *x, const T *scale, const T *shift, T *out, const __grid_constant__ LinearCall call) {
  __shared__ float sums[kWarps];
  prefetch(scale, call.k);
  let_next_begin();
  await_previous();
  const long long start = blockIdx.x * call.k;
  norm_row<T, kCentered>(x + start, scale, shift, out + start, call, sums);
}

__device__ __forceinline__ float gelu_of(float x) {
  return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * (x * x * x))));
}

__device__ __forceinline__ float gelu_erf_of(float x) { return 0.5f * x * erfcf(-0.70710678118654752f * x); }

template <int kAfter, class Out>
__device__ __forceinline__ void finish(Out *out, float value, float up) {
  if (kAfter == kGelu) value = gelu_of(value);
  if (kAfter == kGeluErf) value = gelu_erf_of(value);
  if (kAfter == kSilu) value = value / (1.0f + expf(-value)) * up;
  if (kAfter == kAdd) value += widen(*out);
  *out = convert<Out>::from(value);
}

// The products of one row of the weight, whose first pieces are ahead, with kRows rows of x, each sum known to all
// lanes. next: the row whose pieces are ahead afterwards, or null.
template <class T, int kRows>
__device__ __forceinline__ void dots(Ahead<T> &ahead, const T *w, const T *next, const T *x, long long k, int rows,
                                     float (&sum)[kRows]) {
  constexpr int kCount = per_load<T>();
  const long long pieces = k / kCount;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < kRows; ++r) sum[r] = 0.0f;
  for (long long first = lane;; first += 32 * kAhead) {
    const bool is_last = first + 32 * kAhead >= pieces;
    const T *from = is_last ? next : w;
    const long long then = is_last ? lane : first + 32 * kAhead;
    Held<T, kCount> other[kAhead];  // of one row; of several they would be too many
    if constexpr (kRows == 1) {
#pragma unroll
      for (int a = 0; a < kAhead; ++a)
        if (first + 32 * a < pieces) other[a].load(x + (first + 32 * a) * kCount);
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (first + 32 * a < pieces) {
        float weight[kCount];
        widen_pack(ahead.piece[a].pack(), weight);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (r >= rows) break;
          if constexpr (kRows > 1) other[a].load(x + r * k + (first + 32 * a) * kCount);
          float value[kCount];
          widen_pack(other[a].pack(), value);
#pragma unroll
          for (int i = 0; i < kCount; ++i) sum[r] = fmaf(weight[i], value[i], sum[r]);
        }
      }
      if (from != nullptr) ahead.load(a, from, then + 32 * a, pieces);
    }
    if (is_last) break;
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) sum[r] = over_warp(sum[r]);
}

// The column that a warp begins with, and how many lie between those that it takes.
__device__ __forceinline__ long long first_column() {
  return static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
}

template <class T>
__device__ __forceinline__ void begin_columns(Ahead<T> &ahead, const T *w, const LinearCall &call) {
  const long long n = first_column();
  if (n < call.n) ahead.load(w + n * call.k, call.k / per_load<T>());
}

// found(n, row, value): called by one lane for each element of the result.
template <class T, class Out, int kRows, int kAfter, class F>
__device__ __forceinline__ void columns(Ahead<T> &ahead, const T *x, const T *w, const T *bias, Out *out,
                                        const LinearCall &call, int rows, F found) {
  const int lane = threadIdx.x % 32;
  const long long step = static_cast<long long>(gridDim.x) * kWarps;
  for (long long n = first_column(); n < call.n; n += step) {
    const T *row = w + n * call.k, *second = w + (n + call.n) * call.k,
            *next = n + step < call.n ? row + step * call.k : nullptr;
    float sum[kRows], up[kRows], add = 0.0f, add_up = 0.0f;
    if (call.has_bias) {
      add = widen(bias[n]);
      if (kAfter == kSilu) add_up = widen(bias[n + call.n]);
    }
    dots<T, kRows>(ahead, row, kAfter == kSilu ? second : next, x, call.k, rows, sum);
    if (kAfter == kSilu) dots<T, kRows>(ahead, second, next, x, call.k, rows, up);
    if (lane != 0) continue;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= rows) break;
      float value = sum[r], other = kAfter == kSilu ? up[r] : 0.0f;
      if (call.has_bias) {
        value += add;
        if (kAfter == kSilu) other += add_up;
      }
      finish<kAfter>(out + r * call.n + n, value, other);
      found(n, value);
    }
  }
}

// kRows rows of x a block, of the weight's type; blocks in y are further rows.
template <class T, class Out, int kRows, int kAfter>
__global__ void __launch_bounds__(kThreads)
    linear(const T *x, const T *w, const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  const long long first = static_cast<long long>(blockIdx.y) * kRows;
  const int rows = static_cast<int>(call.rows - first < kRows ? call.rows - first : kRows);
  Ahead<T> ahead;
  begin_columns(ahead, w, call);
  let_next_begin();
  await_previous();
  columns<T, Out, kRows, kAfter>(ahead, x + first * call.k, w, bias, out + first * call.n, call, rows,
                                 [](long long, float) {});
}

// One row of float, normalised by each block for itself, and its products: what each block of norm_linear begins with.
template <class T, bool kCentered>
__device__ __forceinline__ T *begin_row(Ahead<T> &ahead, const float *x, const T *scale, const T *shift, const T *w,
                                        const LinearCall &call) {
  __shared__ float sums[kWarps];
  extern __shared__ uint4 row_memory[];
  T *row = reinterpret_cast<T *>(row_memory);
  begin_columns(ahead, w, call);
  prefetch(scale, call.k);
  let_next_begin();
  await_previous();
  norm_row<T, kCentered>(x, scale, shift, row, call, sums);
  __syncthreads();
  return row;
}

template <class T, class Out, int kAfter, bool kCentered>
__global__ void __launch_bounds__(kThreads)
    norm_linear(const float *x, const T *scale, const T *shift, const T *w, const T *bias, Out *out,
                const __grid_constant__ LinearCall call) {
  Ahead<T> ahead;
  const T *row = begin_row<T, kCentered>(ahead, x, scale, shift, w, call);
  columns<T, Out, 1, kAfter>(ahead, row, w, bias, out, call, 1, [](long long, float) {});
}

// Logits, and of each block the first of its largest, as choose_tokens (sampling.cu) orders them.
template <class T, bool kCentered>
__global__ void __launch_bounds__(kThreads)
    norm_logits(const float *x, const T *scale, const T *shift, const T *w, const T *bias, float *out, u64 *bests,
                const __grid_constant__ LinearCall call) {
  __shared__ u64 own[kWarps];
  Ahead<T> ahead;
  const T *row = begin_row<T, kCentered>(ahead, x, scale, shift, w, call);
  u64 best = 0;
  columns<T, float, 1, kStore>(ahead, row, w, bias, out, call, 1,
                               [&](long long n, float value) { best = max(best, sampling::ordered(value, n)); });
  if (threadIdx.x % 32 == 0) own[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) best = max(best, own[warp]);
  bests[blockIdx.x] = best;
}

// Neighbours in a row: at once where all are whole, else `count` of them.
template <class T, int N>
__device__ __forceinline__ void read_some(const T *from, bool whole, int count, Pack<T, N> &pack) {
  if (whole) {
    pack = load_pack<N>(from);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < count) pack.v[i] = from[i];
  }
}

// What a product of many rows still lacks: out = after(product + bias), a thread for some neighbours of out, which are
// read and written at once where rows are whole packs.
template <class T, class Out, int kAfter>
__global__ void __launch_bounds__(kThreads)
    after_product(const T *product, const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  constexpr int kEach = per_load<T>();
  const long long n = (static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) * kEach, row = blockIdx.y;
  if (n >= call.n) return;
  const int count = static_cast<int>(call.n - n < kEach ? call.n - n : kEach);
  const bool whole = call.n % kEach == 0 && reinterpret_cast<unsigned long long>(bias) % sizeof(Pack<T, kEach>) == 0;
  Pack<T, kEach> value{}, up{}, add{}, add_up{};
  Pack<Out, kEach> result{};
  const T *from = product + row * (kAfter == kSilu ? 2 : 1) * call.n + n;
  read_some(from, whole, count, value);
  if (kAfter == kSilu) read_some(from + call.n, whole, count, up);
  if (call.has_bias) {
    read_some(bias + n, whole, count, add);
    if (kAfter == kSilu) read_some(bias + call.n + n, whole, count, add_up);
  }
  Out *to = out + row * call.n + n;
  if (kAfter == kAdd) read_some(to, whole, count, result);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    float sum = widen(value.v[i]), other = widen(up.v[i]);
    if (call.has_bias) sum += widen(add.v[i]), other += widen(add_up.v[i]);
    finish<kAfter>(&result.v[i], sum, other);
  }
  if (whole) {
    store_pack<kEach>(to, result);
  } else {
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (i < count) to[i] = result.v[i];
  }
}

}  // namespace pk
