// expert_rows.cuh: which rows a block of threads takes, of rows that lie by experts.
#pragma once

namespace pk {

struct ExpertRows {
  int expert, first, rows;  // rows: 0 where there is none
};

// How many tiles there are, where each expert's rows are divided into tiles of so many; known to all lanes of a warp.
__device__ __forceinline__ int count_tiles(const int *counts, int experts, int height) {
  int tiles = 0;
#pragma unroll 4
  for (int i = threadIdx.x % 32; i < experts; i += 32) tiles += (counts[i] + height - 1) / height;
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) tiles += __shfl_xor_sync(0xffffffffu, tiles, lanes);
  return tiles;
}

// The rows of tile `number`, where each expert's are divided into tiles of so many. Each warp finds them for itself:
// lanes add up the rows and tiles of neighbouring experts.
__device__ __forceinline__ ExpertRows find_rows(const int *counts, int experts, int height, int number) {
  const int lane = threadIdx.x % 32, each = (experts + 31) / 32, begin = lane * each;
  int rows = 0, tiles = 0;
#pragma unroll 4
  for (int i = 0; i < each; ++i) {
    const int own = begin + i < experts ? counts[begin + i] : 0;
    rows += own, tiles += (own + height - 1) / height;
  }
  int rows_to = rows, tiles_to = tiles;  // with those of the lanes below
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int more_rows = __shfl_up_sync(0xffffffffu, rows_to, step);
    const int more_tiles = __shfl_up_sync(0xffffffffu, tiles_to, step);
    if (lane >= step) rows_to += more_rows, tiles_to += more_tiles;
  }
  const unsigned behind = __ballot_sync(0xffffffffu, tiles_to > number);
  if (!behind) return {0, 0, 0};
  int first = rows_to - rows, tile = tiles_to - tiles, expert = begin, own = 0;
  const int owner = __ffs(static_cast<int>(behind)) - 1;
  if (lane == owner) {
    for (;; ++expert) {
      own = counts[expert];
      const int more = (own + height - 1) / height;
      if (tile + more > number) break;
      tile += more, first += own;
    }
    const int skipped = (number - tile) * height;
    first += skipped, own = own - skipped < height ? own - skipped : height;
  }
  return {__shfl_sync(0xffffffffu, expert, owner), __shfl_sync(0xffffffffu, first, owner),
          __shfl_sync(0xffffffffu, own, owner)};
}

}  // namespace pk
