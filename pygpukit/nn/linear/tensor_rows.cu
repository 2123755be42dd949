// tensor_rows.cu: products of 1 to 256 rows with a weight (out, in) of 16 bits, in the order of pieces.cuh: as fast as
// memory gives the weight.
//
// Pieces of the weight are on their way while the launch before still runs, while a single row is read and normalised,
// and across tiles. Nothing that an earlier launch wrote is read before await_previous().
#include "logits.cuh"
#include "overlap.cuh"
#include "pieces.cuh"

namespace pk {

constexpr int kGroups = 1, kRowThreads = 32 * kSlices * kGroups;  // of a block, groups of eight warps

using sampling::u64;

template <class T>
__device__ __forceinline__ T *shared_memory() {
  extern __shared__ uint4 row_memory[];
  return reinterpret_cast<T *>(row_memory);
}

// What a block's warps read, and where its row lies behind that.
template <class T, int kStages, bool kPairs>
struct Weight {
  static constexpr int kDown = kPairs ? 2 : 1;
  using P = Pieces<T, kDown, 0, kStages, kPairs>;
  T *const row;
  P pieces;
  __device__ __forceinline__ Weight(const T *w, const LinearCall &call)
      : row(shared_memory<T>() + kSlices * kGroups * P::kSize),
        pieces(shared_memory<T>() + threadIdx.x / 32 * P::kSize, w, nullptr, 0, call,
               blockIdx.x + static_cast<long long>(threadIdx.x / (32 * kSlices)) * gridDim.x,
               static_cast<long long>(kGroups) * gridDim.x) {}
  // Zeros behind the row up to a whole piece; then all of the block can read it.
  __device__ __forceinline__ void end_row(const LinearCall &call) {
    for (long long i = call.k + threadIdx.x; i < static_cast<long long>(pieces.pieces()) * kPiece; i += kRowThreads)
      row[i] = convert<T>::from(0.0f);
    __syncthreads();
    pieces.begin();
  }
};

// x is of the weight's type.
template <class T, class Out, int kEpilogue, int kStages>
__global__ void __launch_bounds__(kRowThreads)
    row_linear(const T *x, const T *w, const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  using W = Weight<T, kStages, kEpilogue == kSilu>;
  __shared__ Parts<1> parts[kGroups];
  W weight(w, call);
  let_next_begin();
  await_previous();
  constexpr int kTogether = 5, kEach = per_load<T>(), kSpan = kRowThreads * kEach;
  for (long long first = threadIdx.x * kEach; first < call.k; first += kTogether * kSpan) {
    Held<T, kEach> held[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (first + i * kSpan < call.k) held[i].load(x + first + i * kSpan);
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (first + i * kSpan < call.k) store_pack<kEach>(weight.row + first + i * kSpan, held[i].pack());
  }
  weight.end_row(call);
  all_tiles<kGroups, kEpilogue, 1, W::kDown>(weight.pieces, parts, weight.row, bias, out, call, 1,
                                             [](long long, float) {});
}

// A row of float, normalised by each block for itself: what those that follow begin with. The scale waits where the row
// will be.
template <bool kCentered, class W, class T>
__device__ __forceinline__ void begin_row(W &weight, const float *x, const T *scale, const T *shift,
                                          const LinearCall &call) {
  __shared__ float sums[kWarps];
  for_own<T>(scale, call.k, [&](long long i, T factor) { weight.row[i] = factor; });
  let_next_begin();
  await_previous();
  norm_row<T, kCentered>(x, weight.row, shift, weight.row, call, sums);
  weight.end_row(call);
}

template <class T, class Out, int kEpilogue, bool kCentered, int kStages>
__global__ void __launch_bounds__(kRowThreads)
    norm_linear(const float *x, const T *scale, const T *shift, const T *w, const T *bias, Out *out,
                const __grid_constant__ LinearCall call) {
  using W = Weight<T, kStages, kEpilogue == kSilu>;
  __shared__ Parts<1> parts[kGroups];
  W weight(w, call);
  begin_row<kCentered>(weight, x, scale, shift, call);
  all_tiles<kGroups, kEpilogue, 1, W::kDown>(weight.pieces, parts, weight.row, bias, out, call, 1,
                                             [](long long, float) {});
}

// Logits, and of each block the first of its largest, as choose_tokens (sampling.cu) orders them.
template <class T, bool kCentered, int kStages>
__global__ void __launch_bounds__(kRowThreads)
    norm_logits(const float *x, const T *scale, const T *shift, const T *w, const T *bias, float *out, u64 *bests,
                const __grid_constant__ LinearCall call) {
  using W = Weight<T, kStages, false>;
  __shared__ Parts<1> parts[kGroups];
  __shared__ u64 own[kRowThreads / 32];
  W weight(w, call);
  begin_row<kCentered>(weight, x, scale, shift, call);
  u64 best = 0;
  all_tiles<kGroups, kStore, 1, 1>(weight.pieces, parts, weight.row, bias, out, call, 1, [&](long long n, float value) {
    best = max(best, sampling::ordered(value, n));
  });
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) best = max(best, __shfl_xor_sync(0xffffffffu, best, lanes));
  if (threadIdx.x % 32 == 0) own[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (int warp = 1; warp < kRowThreads / 32; ++warp) best = max(best, own[warp]);
  bests[blockIdx.x] = best;
}

// 8 kAcross rows of x a block of kAll groups, of the weight's type; blocks in y are further rows, which take the same
// tiles at the same time.
template <class T, class Out, int kEpilogue, int kDown, int kAcross, int kStages, int kAll>
__global__ void __launch_bounds__(32 * kSlices * kAll)
    some_rows(const T *x, const T *w, const T *bias, Out *out, const __grid_constant__ LinearCall call) {
  using P = Pieces<T, kDown, kAcross, kStages, kEpilogue == kSilu>;
  static_assert(kEpilogue != kSilu || kDown % 2 == 0, "pairs");
  __shared__ Parts<8 * kAcross> parts[kAll];
  extern __shared__ __align__(128) unsigned char pieces_memory[];
  constexpr int kRows = 8 * kAcross;
  const long long first = static_cast<long long>(blockIdx.y) * kRows;
  const int rows = static_cast<int>(call.rows - first < kRows ? call.rows - first : kRows);
  const long long group = threadIdx.x / (32 * kSlices);
  P pieces(reinterpret_cast<T *>(pieces_memory) + threadIdx.x / 32 * P::kSize, w, x + first * call.k, rows, call,
           blockIdx.x + group * gridDim.x, static_cast<long long>(kAll) * gridDim.x);
  let_next_begin();
  await_previous();
  pieces.begin();
  all_tiles<kAll, kEpilogue, kRows, kDown>(pieces, parts, static_cast<const T *>(nullptr), bias,
                                              out + first * call.n, call, rows, [](long long, float) {});
}

}  // namespace pk
