// few_rows.cu: products of few rows of each expert with its weight of 16 bits, in the order of pieces.cuh: as fast as
// memory gives the weights.
//
// Blocks of threads share the tiles of all experts that have rows evenly: each takes neighbouring ones, first the
// columns of an expert's rows.
#include "expert_rows.cuh"
#include "overlap.cuh"
#include "pieces.cuh"

namespace pk {

// x (C, k) and out (C, n) by experts. call: of one expert's weight.
template <class T, int kDown, int kAcross, int kStages>
__global__ void __launch_bounds__(32 * kSlices)
    few_rows_of_experts(const T *x, const int *counts, const T *w, T *out, int experts,
                        const __grid_constant__ LinearCall call) {
  using P = Pieces<T, kDown, kAcross, kStages, false>;
  constexpr int kRows = 8 * kAcross;
  __shared__ Parts<kRows> parts;
  extern __shared__ __align__(128) unsigned char pieces_memory[];
  T *const memory = reinterpret_cast<T *>(pieces_memory) + threadIdx.x / 32 * P::kSize;
  let_next_begin();
  await_previous();
  const long long across = P::tiles(call), all = across * count_tiles(counts, experts, kRows);
  long long tile = all * blockIdx.x / gridDim.x;
  const long long end = all * (blockIdx.x + 1) / gridDim.x;
  while (tile < end) {
    const ExpertRows own = find_rows(counts, experts, kRows, static_cast<int>(tile / across));
    const long long begin = tile % across, left = end - tile < across - begin ? end - tile : across - begin;
    const long long column = begin * P::kColumns, columns = left * P::kColumns;
    LinearCall part = call;
    part.n = call.n - column < columns ? call.n - column : columns;
    P pieces(memory, w + (own.expert * call.n + column) * call.k, x + own.first * call.k, own.rows, part, 0, 1);
    pieces.begin();
    T *const to = out + own.first * call.n + column;
#pragma unroll 1
    for (long long i = 0; i < left; ++i) {
      float sum[kDown][kAcross][4];
      pieces.times(sum, static_cast<const T *>(nullptr));
#pragma unroll
      for (int d = 0; d < kDown; ++d) {
        __syncthreads();
        parts.put(sum[d]);
        __syncthreads();
        for (int element = threadIdx.x; element < 16 * own.rows; element += 32 * kSlices) {
          const int row = element / 16;
          const long long n = i * P::kColumns + d * 16 + element % 16;
          if (n < part.n) to[row * call.n + n] = convert<T>::from(parts.total(row, element % 16));
        }
      }
    }
    tile += left;
  }
}

}  // namespace pk
