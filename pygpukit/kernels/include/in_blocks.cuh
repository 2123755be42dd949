// in_blocks.cuh: products of rows with a weight in blocks of few bits, which is read as its file has it.
//
// A tile is 16 columns of the result, or 8 of kSilu. A block of threads makes every gridDim.x-th of them, and its warps
// take chunks of 256 of k in turn: chunk i is warp i % 8's. cp.async brings the bytes of a chunk to shared memory,
// those of the next tile while this one is summed. There lanes read codes, which tensor cores multiply with x, exactly
// and summed in float32: from zero over the values of one scale, then scaled and added in ascending order, last those
// of the warps. The order depends on k alone: a row has the same bits in any batch.
#pragma once
#include "ahead.cuh"
#include "blocks_of_256.cuh"
#include "blocks_of_folders.cuh"
#include "linear.cuh"

namespace pk {

constexpr int kChunk = 256;        // of k, that a warp takes at a time
constexpr int kTileRows = 16;      // of the weight, that a block takes at a time
constexpr int kStageRoom = 10240;  // bytes of shared memory that a warp may take

struct BlocksCall {
  long long n, k;             // columns of this result, of kSilu half of the weight's rows; elements of a row
  long long row_bytes, size;  // of the weight: bytes of a row, and of all
  long long first, stride;    // where the result's columns begin in a row of `out`, and elements of such a row
  int rows, has_bias;
};

template <class Kind>
struct Staged {  // a chunk of kTileRows rows, each from a multiple of 16 bytes on
  static constexpr int kBytes = kChunk / Kind::kValues * Kind::kBytes;
  static constexpr int kPieces = (kBytes + 14) / 16 + 1;
  static constexpr int kPitch = 16 * (kPieces | 1);  // an odd number of pieces: eight rows are in different banks
  static constexpr int kStage = kTileRows * kPitch;
  static constexpr int kStages = kStageRoom / kStage < 1 ? 1 : kStageRoom / kStage > 4 ? 4 : kStageRoom / kStage;
  static constexpr int kWarp = kStages * kStage;
};

// The row of the weight that stands in a line, of kLines from `first` on; one that is there for lines behind the last.
template <int kLines, int kEpilogue>
__device__ __forceinline__ long long weight_row(long long first, int line, long long n) {
  constexpr int kOwn = kEpilogue == kSilu ? kLines / 2 : kLines;
  long long row = first + line % kOwn;
  row = row < n ? row : n - 1;
  return line < kOwn ? row : n + row;
}

template <int kEpilogue>
constexpr int kColumns = kEpilogue == kSilu ? kTileRows / 2 : kTileRows;  // of the result, that a tile is

// A warp's chunks of its tiles' lines, on their way to its stages: two lanes bring a line.
template <class Kind, int kEpilogue>
struct Chunks {
  using S = Staged<Kind>;
  static constexpr int kEach = (S::kPieces + 1) / 2;  // of a lane
  static_assert(kWarps * S::kBytes % 16 == 0, "all chunks of a warp begin as far from a multiple of 16");
  const Byte *const weight;
  const BlocksCall &call;
  const long long above;  // rows of the weight above those of this product
  const int tiles;
  const Byte *from;  // this lane's first piece of the next chunk
  Byte *to;          // of the first stage
  int rest, left;    // bytes from there to the end of the weight, at most 2^30; from the chunk to that of the line
  int tile, low;     // that chunk's; of its first byte in its piece

  __device__ __forceinline__ Chunks(Byte *memory, const Byte *w, const BlocksCall &call, long long above)
      : weight(w), call(call), above(above), tiles(tiles_of(call)), tile(blockIdx.x) {
    to = memory + line() * S::kPitch + skip();
    begin();
  }
  static __device__ __forceinline__ int tiles_of(const BlocksCall &call) {
    return static_cast<int>((call.n + kColumns<kEpilogue> - 1) / kColumns<kEpilogue>);
  }
  static __device__ __forceinline__ int line() { return threadIdx.x % 32 / 2; }
  static __device__ __forceinline__ int skip() { return 16 * (threadIdx.x % 2); }

  // Of the first chunk of a tile's line: its place in the weight.
  __device__ __forceinline__ long long place(int tile, int line) const {
    const long long first = static_cast<long long>(tile) * kColumns<kEpilogue>;
    const long long row = above + weight_row<kTileRows, kEpilogue>(first, line, call.n);
    return row * call.row_bytes + threadIdx.x / 32 * S::kBytes;
  }
  __device__ __forceinline__ void begin() {
    const long long at = place(tile, line());
    low = static_cast<int>(at % 16), left = static_cast<int>(call.row_bytes) - threadIdx.x / 32 * S::kBytes;
    from = weight + (at - low + skip());
    const long long behind = call.size - (at - low + skip());
    rest = static_cast<int>(behind < 1 << 30 ? behind : 1 << 30);
  }
  // One cp.async group, empty behind the last chunk.
  __device__ __forceinline__ void ask(int stage) {
    const int bytes = left < S::kBytes ? left : S::kBytes;
    const int end = left > 0 ? low + bytes - 16 * static_cast<int>(threadIdx.x % 2) : 0;
    Byte *const own = to + stage * S::kStage;
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (32 * i < end) {
        if (rest >= 32 * i + 16)
          copy_ahead<16>(own + 32 * i, from + 32 * i);
        else
          copy_ahead<16>(own + 32 * i, from + 32 * i, rest - 32 * i);
      }
    end_stage();
    constexpr int kStep = kWarps * S::kBytes;
    from += kStep, rest -= kStep, left -= kStep;
    if (left <= 0 && tile + static_cast<int>(gridDim.x) < tiles) {
      tile += gridDim.x;
      begin();
    }
  }
};

// c = a @ b^T, as mma(), which adds to c.
__device__ __forceinline__ void mma_from_zero(float (&c)[4], const Pair (&a)[4], const Pair (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}

// Two rows of the weight, at `group` and group + 8 of the tile: 32 values of each, as mma() takes them.
struct PartOfWeight {
  Pair a[2][4];
  Scales scales[2];

  template <class Kind>
  __device__ __forceinline__ void read(Kind, const Byte *const (&blocks)[2], int s) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      unsigned codes[2];
      Kind::codes(blocks[i], s, threadIdx.x % 4, codes);
      Kind::scales(blocks[i], s, scales[i]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Pair pairs[2];
        to_pairs<Kind>(codes[half], pairs);
        a[half][i] = pairs[0], a[half][2 + i] = pairs[1];
      }
    }
  }
};

// x's values 4 four to 4 four + 3, and those 16 further, of one row; zeros where there is none.
struct PartOfX {
  uint2 halves[2];

  __device__ __forceinline__ void read(const bfloat16_t *x, bool there) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      halves[half] = there ? *reinterpret_cast<const uint2 *>(x + 16 * half) : uint2{};
  }
};

// Sums of x over the values of one scale, of 8 rows: what a minimum value is multiplied with. In rows of the weight,
// which are all the same.
struct Totals {
  float sums[2][4];

  template <class Kind>
  __device__ __forceinline__ void add(const PartOfX &x) {
    constexpr Pair kOnes[4] = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
    if (!Kind::kHasMinimum) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Pair b[2] = {x.halves[half].x, x.halves[half].y};
      if (half == 0 || Kind::kScales == 2)
        mma_from_zero(sums[half], kOnes, b);
      else
        mma(bfloat16_t{}, sums[0], kOnes, b);
    }
  }
};

// sums += 32 of k of 16 rows of the weight and 8 rows of x.
template <class Kind>
__device__ __forceinline__ void add_part(const PartOfWeight &weight, const PartOfX &x, const Totals &totals,
                                         float (&sums)[4]) {
  float product[2][4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Pair b[2] = {x.halves[half].x, x.halves[half].y};
    if (half == 0 || Kind::kScales == 2)
      mma_from_zero(product[half], weight.a[half], b);
    else
      mma(bfloat16_t{}, product[0], weight.a[half], b);
  }
#pragma unroll
  for (int own = 0; own < Kind::kScales; ++own)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[i] = fmaf(weight.scales[i / 2].scale[own], product[own][i], sums[i]);
      if (Kind::kHasMinimum) sums[i] = fmaf(-weight.scales[i / 2].minimum[own], totals.sums[own][i], sums[i]);
    }
}

// A chunk that has come: sums += its products. x: at the chunk's values of row `group`; parts: of 32 values, all where
// kAll.
template <class Kind, int kTiles, bool kAll>
__device__ __forceinline__ void add_chunk(const Byte *const (&lines)[2], const bfloat16_t *x,
                                          const PartOfX (&first)[kTiles == 1 ? kChunk / 32 : 1], int parts, int k,
                                          int rows, float (&sums)[kTiles][4]) {
  constexpr int kParts = Kind::kValues / 32;
#pragma unroll
  for (int s = 0; s < kChunk / 32; ++s) {
    if (!kAll && s >= parts) break;
    const Byte *const blocks[2] = {lines[0] + s / kParts * Kind::kBytes, lines[1] + s / kParts * Kind::kBytes};
    PartOfWeight weight;
    weight.read(Kind{}, blocks, s % kParts);
    if constexpr (kTiles == 1) {
      Totals totals;
      totals.add<Kind>(first[s]);
      add_part<Kind>(weight, first[s], totals, sums[0]);
    } else {
      PartOfX others[2];  // of two tiles: more would spill
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        if (tile % 2 == 0)
#pragma unroll
          for (int i = 0; i < 2; ++i)
            others[i].read(x + 8 * (tile + i) * k + 32 * s,
                           8 * (tile + i) + static_cast<int>(threadIdx.x % 32 / 4) < rows);
        Totals totals;
        totals.add<Kind>(others[tile % 2]);
        add_part<Kind>(weight, others[tile % 2], totals, sums[tile]);
      }
      if (s % 2) asm volatile("" ::: "memory");  // reads of later parts stay behind: more of them ahead would spill
    }
  }
}

// Sums of a tile's warps, while those of the tile before are added up: in shared memory, which is a kernel's own.
template <int kTiles>
using Parts = float[2][kWarps][kTiles][kTileRows][8];

// out = epilogue(x w^T + bias) of up to kTiles times 8 rows of x, from chunks that are on their way. bias: the first is
// that of the first column.
template <class Kind, int kTiles, int kEpilogue, class T, class Out>
__device__ __forceinline__ void add_rows(Chunks<Kind, kEpilogue> &chunks, const Byte *memory, const T *x, int rows,
                                         const T *bias, Out *out, const BlocksCall &call, Parts<kTiles> &parts) {
  using S = Staged<Kind>;
  constexpr int kOwn = kColumns<kEpilogue>;
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, four = threadIdx.x % 4;
  const int width = static_cast<int>(call.k);
  const T *own = x + group * call.k + 4 * four;
  int at = 0, side = 0;
#pragma unroll 1
  for (int tile = blockIdx.x; tile < chunks.tiles; tile += gridDim.x, side ^= 1) {
    const int low[2] = {static_cast<int>(chunks.place(tile, group) % 16),
                        static_cast<int>(chunks.place(tile, group + 8) % 16)};
    float sums[kTiles][4] = {};
#pragma unroll 1
    for (int k = warp * kChunk; k < width; k += kWarps * kChunk) {
      PartOfX first[kTiles == 1 ? kChunk / 32 : 1];  // on its way while the chunk comes
      const int count = width - k < kChunk ? (width - k) / 32 : kChunk / 32;
      if constexpr (kTiles == 1) {
#pragma unroll
        for (int s = 0; s < kChunk / 32; ++s) first[s].read(own + k + 32 * s, group < rows && s < count);
      }
      wait_for_stage<S::kStages - 1>();
      __syncwarp();
      const Byte *const stage = memory + at * S::kStage + group * S::kPitch;
      const Byte *const lines[2] = {stage + low[0], stage + 8 * S::kPitch + low[1]};
      if (count == kChunk / 32)
        add_chunk<Kind, kTiles, true>(lines, own + k, first, count, width, rows, sums);
      else
        add_chunk<Kind, kTiles, false>(lines, own + k, first, count, width, rows, sums);
      __syncwarp();
      chunks.ask(at);
      at = at + 1 == S::kStages ? 0 : at + 1;
    }
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) parts[side][warp][i][group + 8 * (j / 2)][2 * four + j % 2] = sums[i][j];
    __syncthreads();
    int i = threadIdx.x;
    asm volatile("" : "+r"(i));  // what follows from it is made here: kept beside the sums, it would spill
    for (; i < 8 * kTiles * kOwn; i += kThreads) {
      const int line = i % kOwn, row = i / kOwn;
      const long long n = static_cast<long long>(tile) * kOwn + line;
      if (n >= call.n || row >= rows) continue;
      Out *const to = out + row * call.stride + call.first + n;
      float value = 0.0f, other = kEpilogue == kAdd ? widen(*to) : 0.0f;
#pragma unroll
      for (int part = 0; part < kWarps; ++part) {
        value += parts[side][part][row / 8][line][row % 8];
        if (kEpilogue == kSilu) other += parts[side][part][row / 8][line + 8][row % 8];
      }
      if (call.has_bias) {
        value += widen(bias[n]);
        if (kEpilogue == kSilu) other += widen(bias[call.n + n]);
      }
      finish<kEpilogue>(to, value, other);
    }
  }
}

}  // namespace pk
