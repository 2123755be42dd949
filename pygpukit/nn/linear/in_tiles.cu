// in_tiles.cu: products of rows with a weight of few bits in tiles, its values, and how blocks become tiles.
#include "in_tiles.cuh"
#include "overlap.cuh"

namespace pk {

template <class T, class Out, class Kind, int kEpilogue>
__global__ void __launch_bounds__(kThreads, 2)
    row_in_tiles(const T *x, const Byte *w, const T *bias, Out *out, const __grid_constant__ TilesCall call) {
  __shared__ RowParts<kEpilogue> parts;
  Walk<Kind, kEpilogue> walk(w, call);
  Unit<Kind, false> unit;
  walk.load(unit);
  let_next_begin();
  await_previous();
  add_row<Kind, kEpilogue>(walk, unit, x, bias, out, call, parts);
}

// A row of float, whose RMS norm each block computes for itself while its first units come.
template <class T, class Out, class Kind, int kEpilogue>
__global__ void __launch_bounds__(kThreads, 2)
    norm_row_in_tiles(const float *x, const T *scale, const T *shift, const Byte *w, const T *bias, Out *out,
                      const __grid_constant__ TilesCall call, const __grid_constant__ LinearCall norm) {
  __shared__ RowParts<kEpilogue> parts;
  __shared__ float sums[kWarps];
  extern __shared__ uint4 staged[];
  T *const row = reinterpret_cast<T *>(staged);
  Walk<Kind, kEpilogue> walk(w, call);
  Unit<Kind, false> unit;
  walk.load(unit);
  for_own<T>(scale, call.k, [&](long long i, T factor) { row[i] = factor; });
  let_next_begin();
  await_previous();
  norm_row<T, false>(x, row, shift, row, norm, sums);
  __syncthreads();
  add_row<Kind, kEpilogue>(walk, unit, row, bias, out, call, parts);
}

// Eight rows of x a block; blocks in y are further rows.
template <class T, class Out, class Kind, int kEpilogue>
__global__ void __launch_bounds__(kThreads, 2)
    rows_in_tiles(const T *x, const Byte *w, const T *bias, Out *out, const __grid_constant__ TilesCall call) {
  using W = Walk<Kind, kEpilogue>;
  __shared__ float parts[W::kSides][kWarps][kTileRows][8];
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, four = threadIdx.x % 4;
  const int width = static_cast<int>(call.k);
  const long long first = static_cast<long long>(blockIdx.y) * 8;
  const int rows = static_cast<int>(call.rows - first < 8 ? call.rows - first : 8);
  x += first * width, out += first * call.stride;
  W walk(w, call);
  Unit<Kind, true> unit;
  walk.load(unit);
  let_next_begin();
  await_previous();
#pragma unroll 1
  for (int tile = blockIdx.x; tile < walk.tiles; tile += gridDim.x) {
#pragma unroll 1
    for (int side = 0; side < W::kSides; ++side) {
      float sums[1][4][4] = {};
#pragma unroll 1
      for (int at = warp; at < walk.units; at += kWarps) {
        walk.advance();
        add_unit<Kind, 1>(unit, walk.from, walk.there(), x + at * kChunk, width, rows, sums);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
        parts[side][warp][group + 8 * (i / 2)][2 * four + i % 2] =
            (sums[0][0][i] + sums[0][1][i]) + (sums[0][2][i] + sums[0][3][i]);
    }
    __syncthreads();
    finish_tile<kEpilogue, 8>(parts, tile, rows, bias, out, call);
    __syncthreads();
  }
}

struct TileValuesCall {
  long long k, rows;
  int by_token, learned, ordered, unused;  // whether rows are those of tokens, else all; whether positions have rows,
};                                         // too; whether columns have an order of their own

// Values of all rows, a unit a warp; or of those of tokens, eight units a warp. kPlain: of all, with nothing added and
// the columns in their order.
template <class T, class Out, class Kind, bool kPlain>
__global__ void __launch_bounds__(kThreads)
    values_of_tiles(const int *tokens, const int *positions, const Byte *w, const int *order, const T *learned,
                    Out *out, const __grid_constant__ TileValuesCall call) {
  using Of = Tiled<Kind>;
  constexpr int kEach = Parted<Kind>::kEach, kNeighbours = 4 * kEach;
  const bool by_token = !kPlain && call.by_token;
  const int units = static_cast<int>(call.k / kChunk), across = by_token ? (units + 7) / 8 : units;
  const int group = threadIdx.x % 32 / 4, four = threadIdx.x % 4;
  const long long number = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32, high = number / across;
  const int unit = static_cast<int>(number % across) * (by_token ? 8 : 1) + (by_token ? group : 0);
  if (high >= (by_token ? call.rows : call.rows / kTileRows) || unit >= units) return;
  const long long token = by_token ? tokens[high] : high * kTileRows + group;
  const int lane = static_cast<int>(token % 8) * 4 + four;
  const Byte *const from = w + (token / kTileRows * units + unit) * kUnitBytes<Kind>;
  Unit<Kind, true> own;
  own.load_codes(from, lane), own.load_scales(from, lane);
#pragma unroll
  for (int part = 0; part < 2 / kEach; ++part)
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      Scaled scales[2][2];
      value_scales<Of>(own.own + s / 2 * (Of::kOwn / 4), own.shared, part, s / 2, scales);
      Pair a[kEach][4];
      read_group<Kind>(own.codes, 8 * part + s, a);
      const long long at = static_cast<long long>(unit) * kChunk + place_of<Kind>(kEach * (8 * part + s), four);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        if (by_token && row != token % kTileRows / 8) continue;
        const long long line = by_token ? high : token + 8 * row;
        float values[kNeighbours];
#pragma unroll
        for (int i = 0; i < kNeighbours; ++i) {
          const Pair pair = a[i / 4][i % 4 / 2 * 2 + row];
          const float code = __uint_as_float(i % 2 ? pair & 0xffff0000u : pair << 16) - static_cast<float>(Of::kBias);
          values[i] = scales[row][s % 2].scale * code;
          if (Of::kHasMinimum) values[i] -= scales[row][s % 2].minimum;
        }
        if constexpr (kPlain) {
          constexpr int kFour = sizeof(Out) == 4 ? 4 : kNeighbours;  // of one store
#pragma unroll
          for (int i = 0; i < kNeighbours; i += kFour) {
            Pack<Out, kFour> together;
#pragma unroll
            for (int j = 0; j < kFour; ++j) together.v[j] = convert<Out>::from(values[i + j]);
            *reinterpret_cast<Pack<Out, kFour> *>(out + line * call.k + at + i) = together;
          }
        } else {
#pragma unroll
          for (int i = 0; i < kNeighbours; ++i) {
            const long long column = call.ordered ? order[at + i] : at + i;
            if (call.learned) values[i] += widen(learned[positions[line] * call.k + column]);
            out[line * call.k + column] = convert<Out>::from(values[i]);
          }
        }
      }
    }
}

struct TilingCall {
  long long k, row_bytes, tiles;
};

// Blocks of rows as tiles: a thread for what a lane reads of a unit.
template <class Kind>
__global__ void __launch_bounds__(kThreads)
    tiles_of_blocks(const Byte *blocks, Byte *tiles, const __grid_constant__ TilingCall call) {
  using Of = Tiled<Kind>;
  const int units = static_cast<int>(call.k / kChunk), lane = threadIdx.x % 32, group = lane / 4, four = lane % 4;
  const long long number = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (number >= call.tiles * units) return;
  const Byte *const corner = blocks + (number / units * kTileRows + group) * call.row_bytes +
                             number % units * (kChunk / Kind::kValues * Kind::kBytes);
  unsigned codes[4 * Of::kPieces] = {}, own[Of::kOwn ? Of::kOwn / 4 : 1] = {};
  unsigned shared[Of::kShared ? Of::kShared / 4 : 1] = {};
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const Byte *const from = corner + 8 * row * call.row_bytes;
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice)
      Of::put(codes, slice, row, four_codes<Kind>(from, place_of<Kind>(slice, four)));
    Of::put_scales(from, row, four, own, shared);
  }
  Byte *const to = tiles + number * kUnitBytes<Kind>;
  auto *const packs = reinterpret_cast<unsigned *>(to) + 4 * lane;
#pragma unroll
  for (int i = 0; i < 4 * Of::kPieces; ++i) packs[128 * (i / 4) + i % 4] = codes[i];
  auto *const scales = reinterpret_cast<unsigned *>(to + 512 * Of::kPieces);
#pragma unroll
  for (int i = 0; i < Of::kOwn / 4; ++i) scales[lane * (Of::kOwn / 4) + i] = own[i];
  if (four) return;
#pragma unroll
  for (int i = 0; i < Of::kShared / 4; ++i) scales[8 * Of::kOwn + group * (Of::kShared / 4) + i] = shared[i];
}

}  // namespace pk
