// real.cuh: what kernels of large products of float32 and float64 share: copies of both matrices to shared memory,
// which tile a block makes, and how results leave.
#pragma once
#include "ahead.cuh"
#include "epilogue.cuh"
#include "gemm.cuh"
#include "pack.cuh"

namespace pk {

// How a matrix is dense, and read: along k or across it, by whole 16 bytes or by elements.
enum RealRead { kPacksAlong, kPacksAcross, kElementsAlong, kElementsAcross };

constexpr int kRealGroup = 8;  // tiles above each other, whose columns of b are read together

// One matrix as a block copies pieces of it to shared memory, Extent rows of a or columns of b and Depth of k. Packs
// along k lie there as they are, piece[extent][k]; all others piece[k][extent]. Pad: elements after a line there.
// AlongK: threads that take elements of a line along k together.
template <class T, int Extent, int Depth, int Threads, int Read, int Pad, int AlongK>
struct RealSide {
  static constexpr bool kAlong = Read == kPacksAlong || Read == kElementsAlong, kTransposed = Read == kElementsAlong;
  static constexpr bool kRows = Read == kPacksAlong;                         // of the piece are along k
  static constexpr int kTaken = Read < kElementsAlong ? 16 / sizeof(T) : 1;  // elements of a copy
  static constexpr int kPitch = (kRows ? Depth : Extent) + Pad, kSize = (kRows ? Extent : Depth) * kPitch;
  static constexpr int kLines = kAlong ? Extent : Depth, kInner = kAlong ? Depth : Extent;
  static constexpr int kAcross = kTransposed ? AlongK : kInner / kTaken < Threads ? kInner / kTaken : Threads;
  static constexpr int kDown = Threads / kAcross < kLines ? Threads / kAcross : kLines;
  static constexpr int kOfLine = kInner / kTaken / kAcross, kCopies = kLines / kDown * kOfLine;
  static constexpr bool kAll = kDown * kAcross == Threads;  // threads copy
  static_assert(kLines % kDown == 0 && kInner % (kAcross * kTaken) == 0, "threads have as many copies each");

  const T *at;  // the thread's next copy
  long long apart, next;
  int slot;           // of its first copy, in a piece
  int lines, inners;  // that are left from there

  __device__ __forceinline__ RealSide(const T *first, long long stride, long long left, long long k) {
    const int line = threadIdx.x / kAcross, inner = threadIdx.x % kAcross * kTaken;
    const int extent = left < Extent ? static_cast<int>(left) : Extent, depth = static_cast<int>(k);
    at = first + line * stride + inner;
    apart = kDown * stride;
    next = (kAlong ? Depth : Depth * stride) - kLines / kDown * apart;
    slot = kTransposed ? inner * kPitch + line : line * kPitch + inner;
    lines = (kAlong ? extent : depth) - line;
    inners = (kAlong ? depth : extent) - inner;
  }
  // Asks for one of the piece's copies; in ascending order. whole: nothing of the piece is outside.
  __device__ __forceinline__ void ask(T *piece, int copy, bool whole) {
    const int i = copy / kOfLine * kDown, j = copy % kOfLine * (kAcross * kTaken);
    T *const to = piece + slot + (kTransposed ? j * kPitch + i : i * kPitch + j);
    if (kAll || threadIdx.x < kDown * kAcross) {
      if (whole)
        copy_ahead<kTaken>(to, at + j);
      else
        copy_ahead<kTaken>(to, at + j, i < lines && j < inners ? kTaken : 0);
    }
    if (copy % kOfLine == kOfLine - 1) at += apart;
  }
  __device__ __forceinline__ void advance() {
    at += next;
    (kAlong ? inners : lines) -= Depth;
  }
};

// Where the block's tile of Rows x Columns begins. A tile that would reach over an edge is moved inside, if there is
// room: new_row, new_column say where its own results begin there.
struct RealTile {
  long long row, column;
  int new_row, new_column;
};
template <int Rows, int Columns>
__device__ __forceinline__ RealTile own_tile(long long m, long long n) {
  const int tiles_m = static_cast<int>((m + Rows - 1) / Rows), tiles_n = gridDim.x / tiles_m;
  const int above = blockIdx.x / (kRealGroup * tiles_n) * kRealGroup, inside = blockIdx.x - above * tiles_n;
  const int high = tiles_m - above < kRealGroup ? tiles_m - above : kRealGroup;
  const long long row = static_cast<long long>(above + inside % high) * Rows,
                  column = static_cast<long long>(inside / high) * Columns;
  const int over_row = row && row + Rows > m ? static_cast<int>(row + Rows - m) : 0;
  const int over_column = column && column + Columns > n ? static_cast<int>(column + Columns - n) : 0;
  return {row - over_row, column - over_column, over_row, over_column};
}

// Stores a thread's results. at: of the operands' matrices. row_of(i), column_of(j): where sum[i][j] lies, seen from
// `tile`; Vector columns from a multiple of Vector on lie side by side. room: shared memory for Room numbers of each of
// the block's Threads, free.
template <int Vector, int Threads, int Room, class T, int Down, int Across, class RowOf, class ColumnOf>
__device__ __forceinline__ void store_results(const T (&sum)[Down][Across], const GemmLayout<4> &p,
                                              const Epilogue &after, const RealTile &tile, const long long (&at)[4],
                                              const T *bias, const T *residual, T *c, T *room, const RowOf &row_of,
                                              const ColumnOf &column_of) {
  const long long rows = p.m - tile.row, columns = p.n - tile.column;
  T *const out = c + (at[2] + tile.row * p.row[2] + tile.column * p.column[2]);
  const T *const other = residual + (at[3] + tile.row * p.row[3] + tile.column * p.column[3]);
  const bool nothing = after.alpha == 1 && !after.activation && !after.has_bias && !after.has_residual;
  if (nothing && p.column[2] == 1 && p.row[2] % Vector == 0 && p.n % Vector == 0 && aligned<Vector>(out)) {
#pragma unroll
    for (int i = 0; i < Down; ++i)
#pragma unroll
      for (int j = 0; j < Across; j += Vector) {
        const int row = row_of(i), column = column_of(j);
        Pack<T, Vector> results;
#pragma unroll
        for (int e = 0; e < Vector; ++e) results.v[e] = sum[i][j + e];
        if (row >= tile.new_row && row < rows && column >= tile.new_column && column < columns)
          store<Vector>(out + row * p.row[2] + column, results);
      }
    return;
  }
  // From shared memory: one copy of what follows for a part of the results, not for each of Down x Across.
  constexpr int kOfPart = Down * Across <= Room ? Down : Down / 2;
  static_assert(kOfPart * Across <= Room, "");
  T *const own = room + threadIdx.x;
#pragma unroll
  for (int part = 0; part < Down; part += kOfPart) {
#pragma unroll
    for (int i = 0; i < kOfPart; ++i)
#pragma unroll
      for (int j = 0; j < Across; ++j) own[(i * Across + j) * Threads] = sum[part + i][j];
#pragma unroll 1
    for (int i = 0; i < kOfPart; ++i)
#pragma unroll 1
      for (int j = 0; j < Across; ++j) {
        const int row = row_of(part + i), column = column_of(j);
        if (row < tile.new_row || row >= rows || column < tile.new_column || column >= columns) continue;
        out[row * p.row[2] + column * p.column[2]] =
            finished(after, own[(i * Across + j) * Threads], T(0), bias, tile.column + column,
                     other + (row * p.row[3] + column * p.column[3]));
      }
  }
}

// c = after(a @ b), but not of kSwiglu, by a block of WarpsDown x WarpsAcross warps. The layout's operands: a, b, c,
// residual. Stages: pieces that shared memory holds. Warp: how a warp sums what lies there. Most instructions that are
// no multiply-adds cost time: so copies look at where the matrices end only where they may reach it, and are asked for
// side by side, which saves empty loads that the compiler puts before each that follows others.
template <class Warp, int WarpsDown, int WarpsAcross, int Stages, class T>
__device__ __forceinline__ void real_product(const T *a, const T *b, const T *bias, const T *residual, T *c,
                                             const GemmLayout<4> &p, const Epilogue &after, T *stages) {
  using Left = typename Warp::Left;
  using Right = typename Warp::Right;
  constexpr int kRows = WarpsDown * Warp::kRows, kColumns = WarpsAcross * Warp::kColumns, kSteps = Warp::kDepth;
  constexpr int kStage = Left::kSize + Right::kSize, kThreads = 32 * WarpsDown * WarpsAcross;
  static_assert(kSteps % kDepth == 0 || kDepth % kSteps == 0, "");
  const RealTile tile = own_tile<kRows, kColumns>(p.m, p.n);
  const int depth = static_cast<int>((p.k + kDepth - 1) / kDepth) * kDepth;  // sums end with the zeros of gemm.cuh
  const int steps = (depth + kSteps - 1) / kSteps;
  const bool full = tile.row + kRows <= p.m && tile.column + kColumns <= p.n;
  const int inside = full ? static_cast<int>(p.k / kSteps) - (Stages - 1) : 0;  // steps that ask for whole pieces
  const int warp = threadIdx.x / 32, own_row = warp / WarpsAcross * Warp::kRows,
            own_column = warp % WarpsAcross * Warp::kColumns;
  const long long batch = blockIdx.y + static_cast<long long>(blockIdx.z) * gridDim.y;
  if (batch >= p.batches) return;
  long long at[4];
  batch_offsets(p, batch, at);
  Left left(a + at[0] + tile.row * p.row[0], Left::kAlong ? p.row[0] : p.column[0], p.m - tile.row, p.k);
  Right right(b + at[1] + tile.column * p.column[1], Right::kAlong ? p.column[1] : p.row[1], p.n - tile.column, p.k);
  const auto ask = [&](T *to, bool whole) {
#pragma unroll
    for (int copy = 0; copy < Left::kCopies; ++copy) left.ask(to, copy, whole);
#pragma unroll
    for (int copy = 0; copy < Right::kCopies; ++copy) right.ask(to + Left::kSize, copy, whole);
    left.advance();
    right.advance();
    end_stage();
  };
  for (int stage = 0; stage < Stages - 1; ++stage) ask(stages + stage * kStage, false);
  Warp sums(own_row, own_column);
  wait_for_stage<Stages - 2>();
  __syncthreads();
#pragma unroll
  for (int d = 0; d < Warp::kAhead; d += Warp::kUnit) sums.load_first(stages, d);
  const T *from = stages;
  T *to = stages + (Stages - 1) * kStage;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const T *const next = from == stages + (Stages - 1) * kStage ? stages : from + kStage;
    if (step < inside)
      ask(to, true);
    else
      ask(to, false);
#pragma unroll
    for (int d = 0; d < kSteps; d += Warp::kUnit) {
      if (d && d % kDepth == 0 && step * kSteps + d >= depth) break;
      if (d == kSteps - Warp::kAhead) {
        wait_for_stage<Stages - 2>();
        __syncthreads();
      }
      sums.load(from, next, d);
      sums.add(d);
    }
    if (Warp::kAhead == 0) {
      wait_for_stage<Stages - 2>();
      __syncthreads();
    }
    to = const_cast<T *>(from);
    from = next;
  }
  wait_for_stage<0>();
  __syncthreads();  // the stages are free for results
  store_results<Warp::kVector, kThreads, Stages * kStage / kThreads>(
      sums.sum, p, after,
      {tile.row + own_row, tile.column + own_column, tile.new_row - own_row, tile.new_column - own_column}, at, bias,
      residual, c, stages, [&](int i) { return sums.row_of(i); }, [&](int j) { return sums.column_of(j); });
}

}  // namespace pk
