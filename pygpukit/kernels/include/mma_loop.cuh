// mma_loop.cuh: a block's tile of a matrix product by mma.sync: how warps share it, its sums over k, its plain storing.
#pragma once
#include "ahead.cuh"
#include "mma.cuh"
#include "shifted.cuh"

namespace pk {

// The type that elements are summed in.
template <class T>
struct SumOf {
  using Sum = float;
};
template <>
struct SumOf<signed char> {
  using Sum = int;
};

// A fragment as mma() takes it.
template <class T>
__device__ __forceinline__ void prepare(T, Pair (&)[4]) {}
__device__ __forceinline__ void prepare(float, Pair (&fragment)[4]) {
#pragma unroll
  for (Pair &element : fragment) element = to_tf32(__uint_as_float(element));
}

// Warps of a block, Down x Across, and the Rows x Columns that they share: a warp has tiles of 16 x 16.
template <int Rows, int Columns, int Down, int Across>
struct Warps {
  static constexpr int kThreads = 32 * Down * Across, kOwnRows = Rows / Down, kOwnColumns = Columns / Across;
  static constexpr int kTilesDown = kOwnRows / 16, kTilesAcross = kOwnColumns / 16;
  template <class Sum>
  using Sums = Sum[kTilesDown][2 * kTilesAcross][4];

  static __device__ __forceinline__ int row() { return threadIdx.x / 32 / Across * kOwnRows; }
  static __device__ __forceinline__ int column() { return threadIdx.x / 32 % Across * kOwnColumns; }

  // Calls what takes two sums side by side, with the place of the first one in the block's tile.
  template <class Sum, class Take>
  static __device__ __forceinline__ void each_pair(const Sums<Sum> &sums, const Take &take) {
    const int lane = threadIdx.x % 32, own_row = row(), own_column = column();
#pragma unroll
    for (int i = 0; i < kTilesDown; ++i)
#pragma unroll
      for (int j = 0; j < 2 * kTilesAcross; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          take(own_row + 16 * i + 8 * half + lane / 4, own_column + 8 * j + lane % 4 * 2, sums[i][j][2 * half],
               sums[i][j][2 * half + 1]);
  }
};

// sums += left @ right^T over `pieces` stages of Depth of k, in ascending order, of which Stages are in shared memory
// or on their way there. Left, Right: as SwizzledSide. after: called when a stage is summed.
template <class T, class Left, class Right, class Block, int Depth, int Stages, class Sum, class After>
__device__ __forceinline__ void sum_stages(T *stages, Left &left, Right &right, int pieces,
                                           typename Block::template Sums<Sum> &sums, const After &after) {
  constexpr int kTilesDown = Block::kTilesDown, kTilesAcross = Block::kTilesAcross;
  constexpr int kStep = 32 / sizeof(T), kSteps = Depth / kStep;  // of k, that one instruction takes
  constexpr int kStage = Left::kSize + Right::kSize;
  static_assert(kSteps % 2 == 0 && Stages > 1, "fragments take turns");
  const int own_row = Block::row(), own_column = Block::column();
  // Asks for one part of the copies of a stage, of so many.
  const auto copy = [&](int stage, int part, int parts) {
    T *const to = stages + stage * kStage;
#pragma unroll
    for (int i = Left::kCopies * part / parts; i < Left::kCopies * (part + 1) / parts; ++i) left.copy(to, i);
#pragma unroll
    for (int i = Right::kCopies * part / parts; i < Right::kCopies * (part + 1) / parts; ++i)
      right.copy(to + Left::kSize, i);
    if (part == parts - 1) {
      left.advance();
      right.advance();
    }
  };
  Pair rows[2][kTilesDown][4], columns[2][kTilesAcross][4];
  const auto read = [&](int stage, int step) {
    const T *const from = stages + stage * kStage;
#pragma unroll
    for (int i = 0; i < kTilesDown; ++i)
      Left::template fragment<false>(rows[step % 2][i], from, own_row + 16 * i, step * kStep);
#pragma unroll
    for (int j = 0; j < kTilesAcross; ++j)
      Right::template fragment<true>(columns[step % 2][j], from + Left::kSize, own_column + 16 * j, step * kStep);
  };

#pragma unroll
  for (int stage = 0; stage < Stages - 1; ++stage) {
    if (stage < pieces) copy(stage, 0, 1);
    end_stage();
  }
  wait_for_stage<Stages - 2>();
  __syncthreads();
  read(0, 0);
  int stage = 0, asked = Stages - 1;
#pragma unroll 1
  for (int piece = 0; piece < pieces; ++piece) {
    const int next = stage + 1 < Stages ? stage + 1 : 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) {
        read(stage, step + 1);
        if (piece + Stages - 1 < pieces) copy(asked, step, kSteps - 1);
      } else {
        end_stage();
        wait_for_stage<Stages - 2>();
        __syncthreads();  // the next stage has arrived for all, and nobody reads this one any more
        if (piece + 1 < pieces) read(next, 0);
      }
#pragma unroll
      for (int i = 0; i < kTilesDown; ++i) {
        prepare(T{}, rows[step % 2][i]);
#pragma unroll
        for (int at = 0; at < 2 * kTilesAcross; ++at) {
          const int j = i % 2 ? 2 * kTilesAcross - 1 - at : at;  // to and fro: a fragment is used twice in a row
          Pair(&pair)[4] = columns[step % 2][j / 2];
          if (i == 0 && j % 2 == 0) prepare(T{}, pair);
          const Pair column[2] = {pair[j % 2 * 2], pair[j % 2 * 2 + 1]};
          mma(T{}, sums[i][j], rows[step % 2][i], column);
        }
      }
    }
    after(piece);
    asked = stage;
    stage = next;
  }
}

// Stores pairs of a tile, any alignment. c: where its first element goes, `row` elements between rows. rows, columns:
// that the result has from there on. Four lanes have neighbouring pairs.
template <class Result>
struct PairStore {
  Result *c;
  long long row;
  int rows, columns;
  bool whole;

  __device__ __forceinline__ PairStore(Result *c, long long row, int rows, int columns)
      : c(c), row(row), rows(rows), columns(columns), whole(row % 2 == 0 && phase<2>(c) == 0) {}

  __device__ __forceinline__ void operator()(int line, int column, Result first, Result second) const {
    if (line >= rows) return;
    Result *const to = c + line * row + column;
    if (whole && column < columns) {
      store_pack<2>(to, Pack<Result, 2>{first, second});
    } else {
      if (column < columns) to[0] = first;
      if (column + 1 < columns) to[1] = second;
    }
  }
};

}  // namespace pk
