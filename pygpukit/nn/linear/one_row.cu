// one_row.cu: products of one row with a weight (out, in), which pass over the weight as fast as memory gives it.
//
// A warp takes columns of the result. Its rows of the weight come through shared memory, far more of them at a time
// than registers hold: while the launch before still runs, while its row is read and normalised, and across the
// columns. Nothing that an earlier launch wrote is read before await_previous(). Sums are in the order of linear.cu.
#include "ahead.cuh"
#include "linear.cuh"
#include "logits.cuh"
#include "overlap.cuh"

namespace pk {

constexpr int kRowWarps = 16, kRowThreads = 32 * kRowWarps;  // of a block
constexpr int kPieces = 2;                                   // of 16 bytes, that a lane asks for at a time: a stage

using sampling::u64;

// The column that a warp begins with, and how many lie between those that it takes: neighbours are in other blocks.
__device__ __forceinline__ long long first_column() {
  return static_cast<long long>(threadIdx.x / 32) * gridDim.x + blockIdx.x;
}
__device__ __forceinline__ long long column_step() { return static_cast<long long>(gridDim.x) * kRowWarps; }

// A warp's rows of the weight, one after the other, kPairs: each with that of the second half. A lane reads what it
// asked for itself, so that no warp waits for others.
template <class T, int kStages, bool kPairs>
struct Stream {
  static constexpr int kEach = per_load<T>(), kStage = kPieces * kRowThreads * kEach;
  static constexpr int kSize = kStages * kStage;  // elements of a block's
  T *own;
  const T *from;
  long long to_pair, to_next;
  int pieces, asked, left;  // of a row; of this one, to begin with by this lane; rows that are not asked for
  int put = 0, taken = 0;   // stages

  __device__ __forceinline__ Stream(T *memory, const T *w, const LinearCall &call)
      : own(memory + threadIdx.x * kEach),
        from(w + first_column() * call.k),
        to_pair(kPairs ? call.n * call.k : 0),
        to_next(column_step() * call.k - to_pair),
        pieces(static_cast<int>(call.k / kEach)),
        asked(threadIdx.x % 32) {
    const long long n = first_column(), step = column_step();
    left = n < call.n ? static_cast<int>((call.n - n + step - 1) / step) * (kPairs ? 2 : 1) : 0;
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) ask();
  }
  __device__ __forceinline__ void ask() {
    if (left > 0) {
#pragma unroll
      for (int i = 0; i < kPieces; ++i)
        if (asked + 32 * i < pieces)
          copy_ahead<kEach>(own + put * kStage + i * kRowThreads * kEach, from + (asked + 32 * i) * kEach);
      asked += 32 * kPieces;
      if (asked - static_cast<int>(threadIdx.x % 32) >= pieces) {
        from += kPairs && left % 2 == 0 ? to_pair : to_next;
        asked = threadIdx.x % 32, --left;
      }
    }
    end_stage();
    put = put + 1 == kStages ? 0 : put + 1;
  }
  // The product of the next row with x, known to all lanes.
  __device__ __forceinline__ float times(const T *x) {
    const int lane = threadIdx.x % 32;
    float sum = 0.0f;
#pragma unroll 1
    for (int first = 0; first < pieces; first += 32 * kPieces) {
      wait_for_stage<kStages - 2>();
      ask();
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        const int piece = first + 32 * i + lane;
        if (piece < pieces) {
          float weight[kEach], value[kEach];
          widen_pack(load_pack<kEach>(own + taken * kStage + i * kRowThreads * kEach), weight);
          widen_pack(load_pack<kEach>(x + piece * kEach), value);
#pragma unroll
          for (int j = 0; j < kEach; ++j) sum = fmaf(weight[j], value[j], sum);
        }
      }
      taken = taken + 1 == kStages ? 0 : taken + 1;
    }
    return over_warp(sum);
  }
};

// deliver(n, value): called by one lane for each element of the result.
template <class Out, int kEpilogue, class S, class T, class F>
__device__ __forceinline__ void columns(S &stream, const T *x, const T *bias, Out *out, const LinearCall &call,
                                        F deliver) {
  for (long long n = first_column(); n < call.n; n += column_step()) {
    float add = 0.0f, add_up = 0.0f, other = 0.0f;
    if (call.has_bias) {
      add = widen(bias[n]);
      if (kEpilogue == kSilu) add_up = widen(bias[n + call.n]);
    }
    if (kEpilogue == kAdd && threadIdx.x % 32 == 0) other = widen(out[n]);
    float value = stream.times(x);
    if (kEpilogue == kSilu) other = stream.times(x);
    if (threadIdx.x % 32 != 0) continue;
    if (call.has_bias) {
      value += add;
      if (kEpilogue == kSilu) other += add_up;
    }
    finish<kEpilogue>(out + n, value, other);
    deliver(n, value);
  }
}

template <class T>
__device__ __forceinline__ T *shared_memory() {
  extern __shared__ uint4 row_memory[];
  return reinterpret_cast<T *>(row_memory);
}

// x is of the weight's type.
template <class T, class Out, int kEpilogue, int kStages>
__global__ void __launch_bounds__(kRowThreads)
    row_linear(const T *x, const T *w, const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  using S = Stream<T, kStages, kEpilogue == kSilu>;
  T *const memory = shared_memory<T>(), *const row = memory + S::kSize;
  S stream(memory, w, call);
  let_next_begin();
  await_previous();
  constexpr int kTogether = 5, kSpan = kRowThreads * S::kEach;
  for (long long first = threadIdx.x * S::kEach; first < call.k; first += kTogether * kSpan) {
    Held<T, S::kEach> held[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (first + i * kSpan < call.k) held[i].load(x + first + i * kSpan);
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (first + i * kSpan < call.k) store_pack<S::kEach>(row + first + i * kSpan, held[i].pack());
  }
  __syncthreads();
  columns<Out, kEpilogue>(stream, row, bias, out, call, [](long long, float) {});
}

// A row of float, normalised by each block for itself: what those that follow begin with. The scale waits where the row
// will be.
template <class T, bool kCentered>
__device__ __forceinline__ void begin_row(const float *x, const T *scale, const T *shift, T *row,
                                          const LinearCall &call) {
  __shared__ float sums[kWarps];
  for_own<T>(scale, call.k, [&](long long i, T factor) { row[i] = factor; });
  let_next_begin();
  await_previous();
  norm_row<T, kCentered>(x, row, shift, row, call, sums);
  __syncthreads();
}

template <class T, class Out, int kEpilogue, bool kCentered, int kStages>
__global__ void __launch_bounds__(kRowThreads)
    norm_linear(const float *x, const T *scale, const T *shift, const T *w, const T *bias, Out *out,
                const __grid_constant__ LinearCall call) {
  using S = Stream<T, kStages, kEpilogue == kSilu>;
  T *const memory = shared_memory<T>(), *const row = memory + S::kSize;
  S stream(memory, w, call);
  begin_row<T, kCentered>(x, scale, shift, row, call);
  columns<Out, kEpilogue>(stream, row, bias, out, call, [](long long, float) {});
}

// Logits, and of each block the first of its largest, as choose_tokens (sampling.cu) orders them.
template <class T, bool kCentered, int kStages>
__global__ void __launch_bounds__(kRowThreads)
    norm_logits(const float *x, const T *scale, const T *shift, const T *w, const T *bias, float *out, u64 *bests,
                const __grid_constant__ LinearCall call) {
  __shared__ u64 own[kRowWarps];
  using S = Stream<T, kStages, false>;
  T *const memory = shared_memory<T>(), *const row = memory + S::kSize;
  S stream(memory, w, call);
  begin_row<T, kCentered>(x, scale, shift, row, call);
  u64 best = 0;
  columns<float, kStore>(stream, row, bias, out, call,
                         [&](long long n, float value) { best = max(best, sampling::ordered(value, n)); });
  if (threadIdx.x % 32 == 0) own[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int warp = 1; warp < kRowWarps; ++warp) best = max(best, own[warp]);
  bests[blockIdx.x] = best;
}

}  // namespace pk
