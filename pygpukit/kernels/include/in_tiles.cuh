// in_tiles.cuh: products of rows with a weight of few bits whose blocks lie by tiles (tiled_blocks.cuh).
//
// A tile is 16 rows of the weight, a unit 256 of k of it. Warp i of a block of threads takes each eighth unit of a tile
// from unit i on, straight to registers, the next while this one is multiplied. Tensor cores sum a group's codes times
// x in float32 from zero, which is then scaled and added. Sums of groups 2 i and 2 i + 1 of eight are apart from
// others, and added at the end: first those of i = 0 and 1, and of 2 and 3, then both, last those of the warps. So the
// order depends on k alone, and a row has the same bits by each kernel: by those for several rows, whose columns of a
// product are rows of x, and by that for one, whose columns are eight groups of it.
#pragma once
#include "in_blocks.cuh"
#include "tiled_blocks.cuh"

namespace pk {

struct TilesCall {
  long long n, k;           // columns of this result, of kSilu half of the weight's rows; elements of a row
  long long first, stride;  // where the result's columns begin in a row of `out`, and elements of such a row
  int rows, has_bias;
};

template <class Kind>
constexpr int kUnitBytes = 512 * Tiled<Kind>::kPieces + 32 * Tiled<Kind>::kOwn + 8 * Tiled<Kind>::kShared;

template <int kWords>
__device__ __forceinline__ void load_words(unsigned *to, const Byte *from) {
  constexpr int kAtOnce = kWords % 4 == 0 ? 4 : kWords % 2 == 0 ? 2 : 1;
#pragma unroll
  for (int i = 0; i < kWords; i += kAtOnce) {
    const Pack<unsigned, kAtOnce> words = load_once<kAtOnce>(reinterpret_cast<const unsigned *>(from) + i);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) to[i + j] = words.v[j];
  }
}

// What a lane has of a unit: codes, and scales of its own two of eight groups, or of all where kAll.
template <class Kind, bool kAll>
struct Unit {
  using Of = Tiled<Kind>;
  static constexpr int kOwnWords = (kAll ? 4 : 1) * Of::kOwn / 4, kSharedWords = Of::kShared / 4;
  unsigned codes[4 * Of::kPieces];
  unsigned own[kOwnWords ? kOwnWords : 1], shared[kSharedWords ? kSharedWords : 1];

  // Packs of codes none of which are in a later slice than `slice`, nor all in one before `first`.
  __device__ __forceinline__ void load_codes(const Byte *unit, int lane, int first = 0, int slice = kSlices) {
#pragma unroll
    for (int i = 0; i < Of::kPieces; ++i)
      if (Of::last(i) >= first && Of::last(i) <= slice) load_words<4>(codes + 4 * i, unit + 512 * i + 16 * lane);
  }
  __device__ __forceinline__ void load_scales(const Byte *unit, int lane) {
    const Byte *const scales = unit + 512 * Of::kPieces;
    if constexpr (kOwnWords > 0) load_words<kOwnWords>(own, scales + (kAll ? lane - lane % 4 : lane) * Of::kOwn);
    if constexpr (kSharedWords > 0) load_words<kSharedWords>(shared, scales + 32 * Of::kOwn + lane / 4 * Of::kShared);
  }
  // Of groups 2 four and 2 four + 1 of a part, in two rows. Minima are those of fragments, which are kBias too large.
  __device__ __forceinline__ void scales(int part, int four, Scaled (&to)[2][2]) const {
    Of::scales(own + (kAll ? four * (Of::kOwn / 4) : 0), shared, part, four, to);
#pragma unroll
    for (int row = 0; row < 2; ++row)
#pragma unroll
      for (Scaled &of : to[row])
        if (Of::kBias) of.minimum = fmaf(of.scale, static_cast<float>(Of::kBias), of.minimum);
  }
};

// Eight groups of a unit, of which it has one part, or two where groups are of 16.
template <class Kind>
struct Parted {
  static constexpr int kEach = Tiled<Kind>::kGroup / 16, kParts = 2 / kEach;  // slices a group; parts
  static constexpr bool kHasTotals = Tiled<Kind>::kHasMinimum || Tiled<Kind>::kBias != 0;
};

// c = a @ b^T over a group, from zero. b: pairs of its slices.
template <int kEach>
__device__ __forceinline__ void multiply_group(float (&c)[4], const Pair (&a)[kEach][4], const Pair (&b)[2 * kEach]) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const Pair own[2] = {b[2 * i], b[2 * i + 1]};
    if (i == 0)
      mma_from_zero(c, a[0], own);
    else
      mma(bfloat16_t{}, c, a[i], own);
  }
}
template <class Kind>
__device__ __forceinline__ void read_group(const unsigned (&codes)[4 * Tiled<Kind>::kPieces], int group,
                                           Pair (&a)[Parted<Kind>::kEach][4]) {
#pragma unroll
  for (int i = 0; i < Parted<Kind>::kEach; ++i) Tiled<Kind>::fragment(codes, Parted<Kind>::kEach * group + i, a[i]);
}
template <int kEach>
__device__ __forceinline__ void sum_group(float (&c)[4], const Pair (&b)[2 * kEach]) {
  Pair ones[kEach][4];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) ones[i][j] = 0x3f803f80u;
  multiply_group<kEach>(c, ones, b);
}

template <int kPairs>
__device__ __forceinline__ void load_pairs(Pair (&to)[kPairs], const bfloat16_t *from, bool there) {
  const auto pack = there ? *reinterpret_cast<const Pack<unsigned, kPairs> *>(from) : Pack<unsigned, kPairs>{};
#pragma unroll
  for (int i = 0; i < kPairs; ++i) to[i] = pack.v[i];
}

// One row of x: of 256 of k the lane's eight, of which those of `group` are group `group` of a part.
template <class Kind>
struct OneRow {
  using P = Parted<Kind>;
  static constexpr bool kAll = false;
  Pair x[P::kParts][2 * P::kEach];

  __device__ __forceinline__ void load(const bfloat16_t *unit) {
#pragma unroll
    for (int part = 0; part < P::kParts; ++part)
      load_pairs(x[part], unit + 128 * part + 4 * P::kEach * (threadIdx.x % 32), true);
  }
  // sums: of rows `group` and group + 8 of the tile, by groups that this lane owns. The unit becomes the next one.
  __device__ __forceinline__ void add(Unit<Kind, false> &unit, const Byte *next, bool there, float (&sums)[2]) const {
    const int four = threadIdx.x % 4;
#pragma unroll
    for (int part = 0; part < P::kParts; ++part) {
      float mine[4] = {};  // of its groups' products, which are four lanes' in turn
#pragma unroll
      for (int s = 0; s < 8; ++s) {
        Pair a[P::kEach][4];
        float c[4];
        read_group<Kind>(unit.codes, 8 * part + s, a);
        if (there)
          unit.load_codes(next, threadIdx.x % 32, P::kEach * (8 * part + s), P::kEach * (8 * part + s + 1) - 1);
        multiply_group<P::kEach>(c, a, x[part]);
#pragma unroll
        for (int row = 0; row < 2; ++row)
          mine[2 * row + s % 2] = s < 2 || four == s / 2 ? c[2 * row + s % 2] : mine[2 * row + s % 2];
      }
      float totals[4];
      if (P::kHasTotals) sum_group<P::kEach>(totals, x[part]);
      Scaled of[2][2];
      unit.scales(part, four, of);
#pragma unroll
      for (int number = 0; number < 2; ++number)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          sums[row] = fmaf(of[row][number].scale, mine[2 * row + number], sums[row]);
          if (P::kHasTotals) sums[row] = fmaf(-of[row][number].minimum, totals[number], sums[row]);
        }
    }
    if (there) unit.load_scales(next, threadIdx.x % 32);
  }
};

// kTiles times 8 rows of x, `width` apart, from the unit's columns on: sums of four pairs of groups each.
template <class Kind, int kTiles>
__device__ __forceinline__ void add_unit(Unit<Kind, true> &unit, const Byte *next, bool there, const bfloat16_t *x,
                                         int width, int rows, float (&sums)[kTiles][4][4]) {
  using P = Parted<Kind>;
  const int group = threadIdx.x % 32 / 4, four = threadIdx.x % 4;
  const bfloat16_t *const own = x + static_cast<long long>(group) * width + 4 * P::kEach * four;
#pragma unroll
  for (int part = 0; part < P::kParts; ++part) {
    Scaled of[2][2];
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      const int at = 128 * part + 16 * P::kEach * s;
      Pair a[P::kEach][4];
      read_group<Kind>(unit.codes, 8 * part + s, a);
      if (there) unit.load_codes(next, threadIdx.x % 32, P::kEach * (8 * part + s), P::kEach * (8 * part + s + 1) - 1);
      if (s % 2 == 0) unit.scales(part, s / 2, of);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        Pair b[2 * P::kEach];
        load_pairs(b, own + 8 * tile * width + at, 8 * tile + group < rows);
        float c[4], totals[4];
        multiply_group<P::kEach>(c, a, b);
        if (P::kHasTotals) sum_group<P::kEach>(totals, b);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float &sum = sums[tile][s / 2][i];
          sum = fmaf(of[i / 2][s % 2].scale, c[i], sum);
          if (P::kHasTotals) sum = fmaf(-of[i / 2][s % 2].minimum, totals[i], sum);
        }
      }
    }
  }
  if (there) unit.load_scales(next, threadIdx.x % 32);
}

// Where a warp's units lie: those of a tile, of kSilu then those of the tile that stands beside it.
template <class Kind, int kEpilogue>
struct Walk {
  static constexpr int kSides = kEpilogue == kSilu ? 2 : 1;
  const Byte *const weight;
  const int tiles, units;  // of the result; of a tile
  const Byte *from;
  int tile, side, unit;

  __device__ __forceinline__ Walk(const Byte *w, const TilesCall &call)
      : weight(w),
        tiles(static_cast<int>(call.n / kTileRows)),
        units(static_cast<int>(call.k / kChunk)),
        tile(blockIdx.x),
        side(0) {
    begin();
  }
  __device__ __forceinline__ void begin() {
    unit = threadIdx.x / 32;
    if (unit >= units) tile = tiles;
    from = weight + (static_cast<long long>(side * tiles + tile) * units + unit) * kUnitBytes<Kind>;
  }
  __device__ __forceinline__ bool there() const { return tile < tiles; }
  template <bool kAll>
  __device__ __forceinline__ void load(Unit<Kind, kAll> &unit) const {
    if (there()) unit.load_codes(from, threadIdx.x % 32), unit.load_scales(from, threadIdx.x % 32);
  }
  __device__ __forceinline__ void advance() {
    from += kWarps * kUnitBytes<Kind>, unit += kWarps;
    if (unit < units) return;
    if (++side == kSides) side = 0, tile += gridDim.x;
    begin();
  }
};

// Sums of a tile's warps.
template <int kEpilogue, int kRows>
using TileParts = float[kEpilogue == kSilu ? 2 : 1][kWarps][kTileRows][kRows];
// Those of one row, while those of the tile before are added up.
template <int kEpilogue>
using RowParts = TileParts<kEpilogue, 1>[2];

// Adds the warps' sums of a tile's columns, and bias; finishes. parts: of sides, warps, lines, kRows.
template <int kEpilogue, int kRows, class T, class Out>
__device__ __forceinline__ void finish_tile(const TileParts<kEpilogue, kRows> &parts, int tile, int rows, const T *bias,
                                            Out *out, const TilesCall &call) {
  for (int i = threadIdx.x; i < kTileRows * kRows; i += kThreads) {
    const int line = i % kTileRows, row = i / kTileRows;
    const long long n = static_cast<long long>(tile) * kTileRows + line;
    if (n >= call.n || row >= rows) continue;
    Out *const to = out + row * call.stride + call.first + n;
    float value = 0.0f, other = kEpilogue == kAdd ? widen(*to) : 0.0f;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      value += parts[0][warp][line][row];
      if constexpr (kEpilogue == kSilu) other += parts[1][warp][line][row];
    }
    if (call.has_bias) {
      value += widen(bias[n]);
      if (kEpilogue == kSilu) other += widen(bias[call.n + n]);
    }
    finish<kEpilogue>(to, value, other);
  }
}

// out = epilogue(x w^T + bias) of one row of x. unit: the walk's first one, on its way.
template <class Kind, int kEpilogue, class T, class Out>
__device__ __forceinline__ void add_row(Walk<Kind, kEpilogue> &walk, Unit<Kind, false> &unit, const T *x, const T *bias,
                                        Out *out, const TilesCall &call, RowParts<kEpilogue> &parts) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  OneRow<Kind> row;
  if (walk.there()) row.load(x + warp * kChunk);
  int turn = 0;
#pragma unroll 1
  for (int tile = blockIdx.x; tile < walk.tiles; tile += gridDim.x, turn ^= 1) {
#pragma unroll 1
    for (int side = 0; side < Walk<Kind, kEpilogue>::kSides; ++side) {
      float sums[2] = {};
#pragma unroll 1
      for (int at = warp; at < walk.units; at += kWarps) {
        const OneRow<Kind> own = row;
        walk.advance();
        row.load(x + (at + kWarps < walk.units ? at + kWarps : warp) * kChunk);
        own.add(unit, walk.from, walk.there(), sums);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], 1);
        sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], 2);
        if (lane % 4 == 0) parts[turn][side][warp][lane / 4 + 8 * i][0] = sums[i];
      }
    }
    __syncthreads();
    finish_tile<kEpilogue, 1>(parts[turn], tile, 1, bias, out, call);
  }
}

}  // namespace pk
