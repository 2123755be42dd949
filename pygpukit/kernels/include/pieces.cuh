// pieces.cuh: products of few rows with a weight (out, in) of 16 bits on tensor cores, while the weight passes by once.
//
// A sum over K has eight partial sums, of the pieces i, i + 8, ... of 64 elements, each by steps of 16 in ascending order
// in float32. They are added pairwise. The order depends on K alone: a row has the same bits in a product of any number
// of rows.
//
// Eight warps make a tile of the result, one partial sum each. A warp asks for its own pieces, stages ahead and across
// tiles, and waits for nobody else's.
#pragma once
#include "linear.cuh"
#include "swizzled.cuh"

namespace pk {

constexpr int kSlices = 8, kPiece = 64;  // partial sums; elements of a piece, 128 bytes

// Tiles of 16 kDown rows of the weight and 8 kAcross rows of x, which are not read where kAcross is 0. kPairs: every
// other 16 are of the weight's second half.
template <class T, int kDown, int kAcross, int kStages, bool kPairs>
struct Pieces {
  static constexpr int kWeight = 16 * kDown * kPiece, kStage = kWeight + 8 * kAcross * kPiece;
  static constexpr int kSize = kStages * kStage;                   // elements of a warp
  static constexpr int kColumns = 16 * kDown / (kPairs ? 2 : 1);  // of a tile
  T *const memory;
  const T *const w, *const x;
  const LinearCall &call;
  const int rows, lane, slice, count;  // rows of x, pieces of a tile that are this warp's
  long long tile, step;                // of what is asked for next
  int piece, row_piece, left, rows_left;
  int put = 0, rows_put = 0, taken = 0;  // stages

  // own: a warp's kSize elements. first, between: its first tile, and how far apart its tiles are.
  __device__ __forceinline__ Pieces(T *own, const T *weight, const T *all_rows, int row_count, const LinearCall &all,
                                    long long first, long long between)
      : memory(own),
        w(weight),
        x(all_rows),
        call(all),
        rows(row_count),
        lane(threadIdx.x % 32),
        slice(threadIdx.x / 32 % kSlices),
        count((pieces() - slice + kSlices - 1) / kSlices),
        tile(first),
        step(between),
        piece(slice),
        row_piece(slice) {
    const long long all_tiles = tiles(all);
    left = rows_left = first < all_tiles ? count * static_cast<int>((all_tiles - first + between - 1) / between) : 0;
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) ask_weight();
  }
  static __device__ __forceinline__ long long tiles(const LinearCall &call) {
    return (call.n + kColumns - 1) / kColumns;
  }
  __device__ __forceinline__ int pieces() const { return static_cast<int>((call.k + kPiece - 1) / kPiece); }

  // After what the launches before have written can be read.
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) {
      ask_rows();
      end_stage();
    }
  }
  // Eight lanes a row.
  __device__ __forceinline__ void copy_line(T *stage, int line, const T *from, bool is_there, int at) {
    const int octet = lane % 8;
    const bool some = is_there && at * kPiece + octet * 8 < call.k;
    T *const to = stage + swizzled<8>(line, octet, line % 8) / static_cast<int>(sizeof(T));
    copy_ahead<8>(to, some ? from + (at * kPiece + octet * 8) : w, some ? 8 : 0);
  }
  __device__ __forceinline__ void ask_weight() {
    if (left > 0) {
#pragma unroll
      for (int i = 0; i < 4 * kDown; ++i) {
        const int part = i / 4, line = lane / 8 + 4 * i;
        const long long n = tile * kColumns + (kPairs ? part / 2 : part) * 16 + line % 16;
        const long long row = kPairs && part % 2 ? n + call.n : n;
        copy_line(memory + put * kStage, line, w + row * call.k, n < call.n, piece);
      }
      --left;
      piece += kSlices;
      if (piece >= pieces()) piece = slice, tile += step;
    }
    put = put + 1 == kStages ? 0 : put + 1;
  }
  __device__ __forceinline__ void ask_rows() {
    if (kAcross > 0 && rows_left > 0) {
#pragma unroll
      for (int i = 0; i < 2 * kAcross; ++i) {
        const int line = lane / 8 + 4 * i;
        copy_line(memory + rows_put * kStage + kWeight, line, x + line * call.k, line < rows, row_piece);
      }
      --rows_left;
      row_piece += kSlices;
      if (row_piece >= pieces()) row_piece = slice;
    }
    rows_put = rows_put + 1 == kStages ? 0 : rows_put + 1;
  }

  // The warp's partial sums of the next tile. row: of one row of x, zeros behind it up to a whole piece.
  template <int kTiles>
  __device__ __forceinline__ void times(float (&sum)[kDown][kTiles][4], const T *row) {
#pragma unroll
    for (int d = 0; d < kDown; ++d)
#pragma unroll
      for (int a = 0; a < kTiles; ++a)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[d][a][i] = 0.0f;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      wait_for_stage<kStages - 2>();
      __syncwarp();  // all lanes' copies have arrived, and nobody reads the stage before any more
      ask_weight();
      ask_rows();
      end_stage();
      const unsigned char *const bytes = reinterpret_cast<const unsigned char *>(memory + taken * kStage);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Pair right[kTiles][4];
#pragma unroll
        for (int a = 0; a < kTiles; ++a) {
          if constexpr (kAcross > 0) {
            load_matrices<false>(right[a], bytes + kWeight * sizeof(T) +
                                               swizzled<8>(8 * a + lane % 8, 4 * half + lane / 8, lane % 8));
          } else {  // every column has the row
#pragma unroll
            for (int j = 0; j < 4; ++j)
              right[a][j] = *reinterpret_cast<const Pair *>(row + (slice + i * kSlices) * kPiece + 32 * half +
                                                                 8 * j + lane % 4 * 2);
          }
        }
#pragma unroll
        for (int s = 0; s < 2; ++s)
#pragma unroll
          for (int d = 0; d < kDown; ++d) {
            Pair left_side[4];
            load_matrices<false>(left_side,
                                 bytes + swizzled<8>(16 * d + lane % 16, 2 * (2 * half + s) + lane / 16, lane % 8));
#pragma unroll
            for (int a = 0; a < kTiles; ++a) {
              const Pair column[2] = {right[a][2 * s], right[a][2 * s + 1]};
              mma(T{}, sum[d][a], left_side, column);
            }
          }
      }
      taken = taken + 1 == kStages ? 0 : taken + 1;
    }
  }
};

// Of a tile's 16 columns of the result, kRows rows: parts of each slice.
template <int kRows>
struct Parts {
  static constexpr int kPitch = 17;  // against bank conflicts
  float of[kSlices][kRows * kPitch];

  template <int kTiles>
  __device__ __forceinline__ void put(const float (&sum)[kTiles][4]) {
    const int lane = threadIdx.x % 32, slice = threadIdx.x / 32 % kSlices;
#pragma unroll
    for (int a = 0; a < kTiles; ++a)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = 8 * a + lane % 4 * 2 + i % 2;
        if (row < kRows) of[slice][row * kPitch + lane / 4 + i / 2 * 8] = sum[a][i];
      }
  }
  __device__ __forceinline__ float total(int row, int column) const {
    const int at = row * kPitch + column;
    return ((of[0][at] + of[1][at]) + (of[2][at] + of[3][at])) + ((of[4][at] + of[5][at]) + (of[6][at] + of[7][at]));
  }
};

// The tiles of all groups of eight warps: out = epilogue(x w^T + bias). All of a block call it. deliver(n, value): by one
// thread for each element of the first row.
template <int kGroups, int kEpilogue, int kRows, int kDown, class P, class T, class Out, class F>
__device__ __forceinline__ void all_tiles(P &pieces, Parts<kRows> *parts, const T *row, const T *bias, Out *out,
                                          const LinearCall &call, int rows, F deliver) {
  constexpr bool kPairs = kEpilogue == kSilu;
  constexpr int kTiles = (kRows + 7) / 8, kThreadsOf = 32 * kSlices, kEach = (16 * kRows + kThreadsOf - 1) / kThreadsOf;
  const int group = threadIdx.x / kThreadsOf, thread = threadIdx.x % kThreadsOf;
  Parts<kRows> &own = parts[group];
  const long long tiles = P::tiles(call), step = static_cast<long long>(kGroups) * gridDim.x;
  for (long long first = blockIdx.x; first < tiles; first += step) {
    const long long tile = first + static_cast<long long>(group) * gridDim.x;
    const bool has_tile = tile < tiles;
    float sum[kDown][kTiles][4], gate[kEach];
    if (has_tile) pieces.times(sum, row);
#pragma unroll
    for (int d = 0; d < kDown; ++d) {
      __syncthreads();
      if (has_tile) own.put(sum[d]);
      __syncthreads();
      if (!has_tile) continue;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int element = thread + i * kThreadsOf, r = element / 16;
        const long long n = tile * P::kColumns + (kPairs ? d / 2 : d) * 16 + element % 16;
        if (element >= 16 * kRows || r >= rows || n >= call.n) continue;
        float value = own.total(r, element % 16);
        if (call.has_bias) value += widen(bias[kPairs && d % 2 ? n + call.n : n]);
        if (kPairs && d % 2 == 0) {
          gate[i] = value;
          continue;
        }
        Out *const to = out + r * call.n + n;
        const float other = kPairs ? value : kEpilogue == kAdd ? widen(*to) : 0.0f;
        finish<kEpilogue>(to, kPairs ? gate[i] : value, other);
        if (r == 0) deliver(n, value);
      }
    }
  }
}

}  // namespace pk
