// wide_in_tiles.cuh: in_tiles.cuh's products for many rows, with the same bits.
//
// Each warp has a tile of the weight, of kSilu every second one the tile that stands beside its neighbour's, and goes
// through all of its units in the order in which the warps of the others add theirs: 0, 8, 16, ..., then 1, 9, ... The
// rows of x lie in shared memory, a unit's columns at a time, the next on their way.
#pragma once
#include "in_tiles.cuh"

namespace pk {

constexpr int kWideWarps = 4, kWideTiles = 4;  // of eight rows of x

template <class Kind>
struct WideRows {  // a unit's columns of all rows, so far apart that eight lanes read from all banks
  static constexpr int kPitch = Tiled<Kind>::kGroup == 32 ? 576 : 544, kBytes = 8 * kWideTiles * kPitch;

  // One cp.async group, empty where unit is -1. Rows that are not there are the last one.
  static __device__ __forceinline__ void ask(Byte *stage, int unit, const bfloat16_t *x, int rows, long long width) {
    if (unit >= 0) {
      const bfloat16_t *const from = x + unit * kChunk + 8 * (threadIdx.x % 32);
#pragma unroll
      for (int i = 0; i < 8 * kWideTiles / kWideWarps; ++i) {
        const int row = threadIdx.x / 32 + kWideWarps * i;
        copy_ahead<8>(reinterpret_cast<bfloat16_t *>(stage + row * kPitch) + 8 * (threadIdx.x % 32),
                      from + (row < rows ? row : rows - 1) * width);
      }
    }
    end_stage();
  }
};

// -1 behind the last.
__device__ __forceinline__ int unit_after(int unit, int units) {
  if (unit + kWarps < units) return unit + kWarps;
  const int first = unit % kWarps + 1;
  return first < kWarps && first < units ? first : -1;
}

}  // namespace pk
