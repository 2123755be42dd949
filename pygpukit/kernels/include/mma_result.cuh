// mma_result.cuh: which tile of a product by mma.sync a block has, and how it stores it.
#pragma once
#include "shifted.cuh"

namespace pk {

// The tile of a block, by blockIdx.x: `group` tiles above each other, then those to their right, so that what blocks
// read at the same time is in L2.
struct TilePlace {
  int down, across;
};
__device__ __forceinline__ TilePlace grouped_tile(int tiles_down, int tiles_across, int group) {
  const int above = blockIdx.x / (group * tiles_across) * group, inside = blockIdx.x - above * tiles_across;
  const int high = tiles_down - above < group ? tiles_down - above : group;
  return {above + inside % high, inside / high};
}

// Stores a tile of rounded sums from shared memory, Pitch elements between rows there. c: where its first element goes,
// `row` elements between rows, any alignment. rows, columns: that the result has from there on.
template <int Rows, int Columns, int Pitch, int Threads, class T>
__device__ __forceinline__ void store_tile(const T *sums, T *c, long long row, int rows, int columns) {
  constexpr int kPack = 16 / sizeof(T);
  if (phase<kPack>(c) == 0 && row % kPack == 0) {
#pragma unroll 4
    for (int i = threadIdx.x; i < Rows * Columns / kPack; i += Threads) {
      const int line = i / (Columns / kPack), column = i % (Columns / kPack) * kPack;
      if (line < rows && column < columns)
        store_pack<kPack>(c + line * row + column, load_pack<kPack>(sums + line * Pitch + column));
    }
    return;
  }
  for (int line = threadIdx.x / 32; line < Rows && line < rows; line += Threads / 32) {
    T *const to = c + line * row;
    const T *const from = sums + line * Pitch;
    const int by = phase<2>(to);  // pairs are stored as one, wherever the row begins
    for (int i = 2 * static_cast<int>(threadIdx.x % 32) - by; i < Columns && i < columns; i += 64) {
      const bool second = i + 1 < Columns && i + 1 < columns;
      if (i >= 0 && second) {
        store_pack<2>(to + i, Pack<T, 2>{from[i], from[i + 1]});
      } else {
        if (i >= 0) to[i] = from[i];
        if (i < 0 && second) to[i + 1] = from[i + 1];
      }
    }
  }
}

}  // namespace pk
