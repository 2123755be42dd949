// linear.cu: norms of rows, and products of a few rows with a weight (out, in): a warp for each column of the result.
//
// A sum over K has 32 partial sums, one a lane, of the 16-byte pieces lane, lane + 32, ... in their order, which are
// added in a fixed tree. The order depends on K alone: a row has the same bits however many rows are computed with it.
//
// Weights are on their way before anything else: before the launch that made the rows has ended, before their norm, and
// those of the next column while a sum is added up. Nothing that an earlier launch wrote is read before
// await_previous().
#include "linear.cuh"
#include "overlap.cuh"

namespace pk {

constexpr int kAhead = 4;  // pieces of a weight's row that are read before the first is used

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
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (first + 32 * a < pieces) {
        float weight[kCount];
        widen_pack(ahead.piece[a].pack(), weight);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (r >= rows) break;
          Held<T, kCount> other;
          other.load(x + r * k + (first + 32 * a) * kCount);
          float value[kCount];
          widen_pack(other.pack(), value);
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

// kRows rows of x a block, of the weight's type; blocks in y are further rows.
template <class T, class Out, int kRows, int kEpilogue>
__global__ void __launch_bounds__(kThreads)
    linear(const T *x, const T *w, const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  const long long first = static_cast<long long>(blockIdx.y) * kRows;
  const int rows = static_cast<int>(call.rows - first < kRows ? call.rows - first : kRows);
  Ahead<T> ahead;
  if (first_column() < call.n) ahead.load(w + first_column() * call.k, call.k / per_load<T>());
  let_next_begin();
  await_previous();
  x += first * call.k, out += first * call.n;
  const int lane = threadIdx.x % 32;
  const long long step = static_cast<long long>(gridDim.x) * kWarps;
  for (long long n = first_column(); n < call.n; n += step) {
    const T *row = w + n * call.k, *second = w + (n + call.n) * call.k,
            *next = n + step < call.n ? row + step * call.k : nullptr;
    float sum[kRows], up[kRows], add = 0.0f, add_up = 0.0f;
    if (call.has_bias) {
      add = widen(bias[n]);
      if (kEpilogue == kSilu) add_up = widen(bias[n + call.n]);
    }
    dots<T, kRows>(ahead, row, kEpilogue == kSilu ? second : next, x, call.k, rows, sum);
    if (kEpilogue == kSilu) dots<T, kRows>(ahead, second, next, x, call.k, rows, up);
    if (lane != 0) continue;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= rows) break;
      Out *to = out + r * call.n + n;
      float value = sum[r], other = kEpilogue == kSilu ? up[r] : kEpilogue == kAdd ? widen(*to) : 0.0f;
      if (call.has_bias) {
        value += add;
        if (kEpilogue == kSilu) other += add_up;
      }
      finish<kEpilogue>(to, value, other);
    }
  }
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
template <class T, class Out, int kEpilogue>
__global__ void __launch_bounds__(kThreads)
    after_product(const T *product, const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  constexpr int kEach = per_load<T>();
  const long long n = (static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) * kEach, row = blockIdx.y;
  if (n >= call.n) return;
  const int count = static_cast<int>(call.n - n < kEach ? call.n - n : kEach);
  const bool whole = call.n % kEach == 0 && reinterpret_cast<unsigned long long>(bias) % sizeof(Pack<T, kEach>) == 0;
  Pack<T, kEach> value{}, up{}, add{}, add_up{};
  Pack<Out, kEach> result{};
  const T *from = product + row * (kEpilogue == kSilu ? 2 : 1) * call.n + n;
  read_some(from, whole, count, value);
  if (kEpilogue == kSilu) read_some(from + call.n, whole, count, up);
  if (call.has_bias) {
    read_some(bias + n, whole, count, add);
    if (kEpilogue == kSilu) read_some(bias + call.n + n, whole, count, add_up);
  }
  Out *to = out + row * call.n + n;
  if (kEpilogue == kAdd) read_some(to, whole, count, result);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    float sum = widen(value.v[i]), other = kEpilogue == kAdd ? widen(result.v[i]) : widen(up.v[i]);
    if (call.has_bias) {
      sum += widen(add.v[i]);
      if (kEpilogue == kSilu) other += widen(add_up.v[i]);
    }
    finish<kEpilogue>(&result.v[i], sum, other);
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
