// fp8.cu: products of fp8 with scales by mma.sync, which takes fp8 from SM 8.9 on.
//
// As in tile/fp8.cu: tensor cores sum fp8 with fewer bits than float32 has, so they sum 128 of k at a time, from zero,
// and these partial sums are added in float32, in ascending order. Both operands are read along k alone.
#include "mma_fp8.cuh"
#include "mma_loop.cuh"
#include "mma_result.cuh"
#include "swizzled.cuh"

namespace pk {

constexpr int kScaleBlock = 128;  // of k, that share a scale, and that tensor cores sum

// Of a and b: elements from the first one and between lines along k. c: dense. group: of grouped_tile(). Of scales:
// what shifts a line to its group, elements between those of groups and of blocks of k. factor: of the whole product.
struct ScaledProduct {
  long long start[2], line[2];
  int m, n, k, group;
  int line_shift[2], scale_line[2], scale_depth[2], has_scale[2];
  float factor;
  int unused;
};

// ByBlock: a scale of a for each block of k and row, and one of b for each and the tile. Else: one for each line.
template <class T, class Result, int Rows, int Columns, int Depth, int Down, int Across, int Stages, int Blocks,
          bool ByBlock>
__global__ void __launch_bounds__(32 * Down * Across, Blocks)
    mma_scaled(const T *a, const T *b, const float *a_scale, const float *b_scale, Result *c,
               const __grid_constant__ ScaledProduct p) {
  static_assert(Depth == kScaleBlock && kScaleBlock % Columns == 0, "a stage of a tile has one scale of b");
  using Block = Warps<Rows, Columns, Down, Across>;
  using Left = SwizzledSide<T, Rows, Depth, true, Block::kThreads>;
  using Right = SwizzledSide<T, Columns, Depth, true, Block::kThreads>;
  extern __shared__ __align__(128) unsigned char scaled_memory[];
  const TilePlace place = grouped_tile((p.m + Rows - 1) / Rows, (p.n + Columns - 1) / Columns, p.group);
  const int row0 = place.down * Rows, column0 = place.across * Columns, pieces = (p.k + Depth - 1) / Depth;
  Left left(a + p.start[0] + row0 * p.line[0], p.line[0], p.m - row0, p.k);
  Right right(b + p.start[1] + column0 * p.line[1], p.line[1], p.n - column0, p.k);

  const auto scale_of = [&](const float *scales, int which, int line, int block) {
    const int last = (which ? p.n : p.m) - 1, group = (line < last ? line : last) >> p.line_shift[which];
    return p.has_scale[which] ? scales[static_cast<long long>(group) * p.scale_line[which] +
                                       static_cast<long long>(block) * p.scale_depth[which]]
                              : 1.0f;
  };
  float scales[Block::kTilesDown][2];  // of the thread's rows, in the next stage that is summed
  const auto look_up = [&](int block) {
    const float of_b = scale_of(b_scale, 1, column0, block);
#pragma unroll
    for (int i = 0; i < Block::kTilesDown; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        scales[i][half] =
            of_b * scale_of(a_scale, 0, row0 + Block::row() + 16 * i + 8 * half + threadIdx.x % 32 / 4, block);
  };
  typename Block::template Sums<float> part = {}, sums = {};
  if constexpr (ByBlock) look_up(0);
  sum_stages<T, Left, Right, Block, Depth, Stages>(
      reinterpret_cast<T *>(scaled_memory), left, right, pieces, part, [&](int piece) {
#pragma unroll
        for (int i = 0; i < Block::kTilesDown; ++i)
#pragma unroll
          for (int j = 0; j < 2 * Block::kTilesAcross; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              if constexpr (ByBlock)
                sums[i][j][e] = fmaf(part[i][j][e], scales[i][e / 2], sums[i][j][e]);
              else
                sums[i][j][e] += part[i][j][e];
              part[i][j][e] = 0.0f;
            }
        if constexpr (ByBlock) {
          if (piece + 1 < pieces) look_up(piece + 1);
        }
      });

  const PairStore<Result> store(c + static_cast<long long>(row0) * p.n + column0, p.n, p.m - row0, p.n - column0);
  Block::each_pair(sums, [&](int row, int column, float first, float second) {
    float scale[2] = {p.factor, p.factor};
    if constexpr (!ByBlock) {
      const float of_a = p.factor * scale_of(a_scale, 0, row0 + row, 0);
#pragma unroll
      for (int i = 0; i < 2; ++i) scale[i] = of_a * scale_of(b_scale, 1, column0 + column + i, 0);
    }
    store(row, column, convert<Result>::from(scale[0] * first), convert<Result>::from(scale[1] * second));
  });
}

}  // namespace pk
