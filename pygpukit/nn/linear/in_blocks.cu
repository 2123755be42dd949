// in_blocks.cu: products of rows with a weight in blocks of few bits, which is read as its file has it, and its values.
//
// A block of threads makes 16 columns of the result, or 8 of kSilu. Its warps take chunks of 256 of k in turn: chunk i
// is warp i % 8's. cp.async brings the bytes of a chunk to shared memory, where lanes read codes, which tensor cores
// multiply with x, exactly and summed in float32: from zero over the values of one scale, then scaled and added in
// ascending order, last those of the warps. The order depends on k alone: a row has the same bits in any batch.
#include "ahead.cuh"
#include "blocks_of_256.cuh"
#include "blocks_of_folders.cuh"
#include "linear.cuh"
#include "overlap.cuh"

namespace pk {

constexpr int kChunk = 256;        // of k, that a warp takes at a time
constexpr int kTileRows = 16;      // of the weight, that a block takes
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

// The row of the weight that stands in a tile's line; one that is there for lines behind the last.
template <int kEpilogue>
__device__ __forceinline__ long long weight_row(int line, long long n) {
  constexpr int kOwn = kEpilogue == kSilu ? kTileRows / 2 : kTileRows;
  long long row = static_cast<long long>(blockIdx.x) * kOwn + line % kOwn;
  row = row < n ? row : n - 1;
  return line < kOwn ? row : n + row;
}

// A chunk's bytes, on their way to a stage. One cp.async group, empty behind the last chunk.
template <class Kind, int kEpilogue>
__device__ __forceinline__ void ask(Byte *stage, const Byte *w, long long chunk, const BlocksCall &call) {
  using S = Staged<Kind>;
  const long long begin = chunk * S::kBytes, left = call.row_bytes - begin;
  if (left > 0) {
    const int bytes = static_cast<int>(left < S::kBytes ? left : S::kBytes);
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < kTileRows * S::kPieces; i += 32) {
      const int line = i / S::kPieces, piece = i % S::kPieces;
      const long long from = weight_row<kEpilogue>(line, call.n) * call.row_bytes + begin;
      const long long at = from / 16 * 16 + 16 * piece;
      if (at >= from + bytes) continue;
      const long long rest = call.size - at;
      copy_ahead<16>(stage + line * S::kPitch + 16 * piece, w + at, static_cast<int>(rest < 16 ? rest : 16));
    }
  }
  end_stage();
}

// x's values 4 four to 4 four + 3, and those 16 further, as to_pairs() orders them.
template <class T>
__device__ __forceinline__ void read_x(const T *x, Pair (&to)[2][2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint2 words = *reinterpret_cast<const uint2 *>(x + 16 * half);
    to[half][0] = __byte_perm(words.x, words.y, 0x5410u), to[half][1] = __byte_perm(words.x, words.y, 0x7632u);
  }
}

// Part s of a chunk: sums += 32 of k of two rows of the weight, at `group` and group + 8 of the tile, and kTiles times
// 8 rows of x. x: at this part's values, of row `group`.
template <class T, class Kind, int kTiles>
__device__ __forceinline__ void add_part(const Byte *const (&blocks)[2], int s, const T *x, long long k, int rows,
                                         float (&sums)[kTiles][4]) {
  constexpr Pair kOne = 0x3f803f80u;
  const int group = threadIdx.x % 32 / 4, four = threadIdx.x % 4;
  Pair a[2][4];
  Scales scales[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    unsigned codes[2];
    Kind::codes(blocks[i], s, four, codes);
    Kind::scales(blocks[i], s, scales[i]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Pair pairs[2];
      to_pairs<Kind>(T{}, codes[half], pairs);
      a[half][i] = pairs[0], a[half][2 + i] = pairs[1];
    }
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    Pair b[2][2] = {};
    if (8 * tile + group < rows) read_x(x + 8 * tile * k, b);
    float product[Kind::kScales][4] = {}, total[Kind::kScales][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own = Kind::kScales == 2 ? half : 0;
      mma(T{}, product[own], a[half], b[half]);
      if (Kind::kHasMinimum) mma(T{}, total[own], {kOne, kOne, kOne, kOne}, b[half]);
    }
#pragma unroll
    for (int own = 0; own < Kind::kScales; ++own)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[tile][i] = fmaf(scales[i / 2].scale[own], product[own][i], sums[tile][i]);
        if (Kind::kHasMinimum) sums[tile][i] = fmaf(-scales[i / 2].minimum[own], total[own][i], sums[tile][i]);
      }
  }
}

// kTiles times 8 rows of x a block; blocks in y are further rows. bias: the first is that of the first column.
template <class T, class Out, class Kind, int kTiles, int kEpilogue>
__global__ void __launch_bounds__(kThreads)
    linear_in_blocks(const T *x, const Byte *w, const T *bias, Out *out, const __grid_constant__ BlocksCall call) {
  using S = Staged<Kind>;
  extern __shared__ uint4 staged[];
  __shared__ float parts[kWarps][kTiles][kTileRows][8];
  constexpr int kOwn = kEpilogue == kSilu ? kTileRows / 2 : kTileRows;
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, four = threadIdx.x % 4;
  Byte *const memory = reinterpret_cast<Byte *>(staged) + warp * S::kWarp;
#pragma unroll
  for (int i = 0; i < S::kStages; ++i) ask<Kind, kEpilogue>(memory + i * S::kStage, w, warp + kWarps * i, call);
  let_next_begin();
  await_previous();
  const long long first_row = static_cast<long long>(blockIdx.y) * 8 * kTiles;
  const int rows = static_cast<int>(call.rows - first_row < 8 * kTiles ? call.rows - first_row : 8 * kTiles);
  const T *own = x + (first_row + group) * call.k + 4 * four;
  const int low[2] = {static_cast<int>(weight_row<kEpilogue>(group, call.n) * call.row_bytes % 16),
                      static_cast<int>(weight_row<kEpilogue>(group + 8, call.n) * call.row_bytes % 16)};
  float sums[kTiles][4] = {};
  int at = 0;
#pragma unroll 1
  for (long long chunk = warp; chunk * kChunk < call.k; chunk += kWarps) {
    wait_for_stage<S::kStages - 1>();
    __syncwarp();
    Byte *const stage = memory + at * S::kStage;
    const int begin = static_cast<int>(chunk * S::kBytes % 16);
    const Byte *const lines[2] = {stage + group * S::kPitch + (low[0] + begin) % 16,
                                  stage + (group + 8) * S::kPitch + (low[1] + begin) % 16};
#pragma unroll
    for (int s = 0; s < kChunk / 32; ++s) {
      if (chunk * kChunk + 32 * s >= call.k) break;
      constexpr int kParts = Kind::kValues / 32;
      const Byte *const blocks[2] = {lines[0] + s / kParts * Kind::kBytes, lines[1] + s / kParts * Kind::kBytes};
      add_part<T, Kind, kTiles>(blocks, s % kParts, own + chunk * kChunk + 32 * s, call.k, rows, sums);
    }
    __syncwarp();
    ask<Kind, kEpilogue>(stage, w, chunk + static_cast<long long>(kWarps) * S::kStages, call);
    at = at + 1 == S::kStages ? 0 : at + 1;
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
    for (int i = 0; i < 4; ++i) parts[warp][tile][group + 8 * (i / 2)][2 * four + i % 2] = sums[tile][i];
  __syncthreads();
  for (int i = threadIdx.x; i < 8 * kTiles * kOwn; i += kThreads) {
    const int line = i % kOwn, row = i / kOwn;
    const long long n = static_cast<long long>(blockIdx.x) * kOwn + line;
    if (n >= call.n || row >= rows) continue;
    Out *const to = out + (first_row + row) * call.stride + call.first + n;
    float value = 0.0f, other = kEpilogue == kAdd ? widen(*to) : 0.0f;
#pragma unroll
    for (int part = 0; part < kWarps; ++part) {
      value += parts[part][row / 8][line][row % 8];
      if (kEpilogue == kSilu) other += parts[part][row / 8][line + 8][row % 8];
    }
    if (call.has_bias) {
      value += widen(bias[n]);
      if (kEpilogue == kSilu) other += widen(bias[call.n + n]);
    }
    finish<kEpilogue>(to, value, other);
  }
}

struct ValuesCall {
  long long k, row_bytes, rows;
  int by_token, learned;  // whether rows are those of tokens, else all; whether positions have rows, too
};

// Rows of values, those of tokens or all: a thread for 8 of 32 values, in blocks of y a row each.
template <class T, class Out, class Kind>
__global__ void __launch_bounds__(kThreads)
    values_of_blocks(const int *tokens, const int *positions, const Byte *w, const T *learned, Out *out,
                     const __grid_constant__ ValuesCall call) {
  const long long eight = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x, part = eight / 4;
  if (part * 32 >= call.k) return;
  constexpr int kParts = Kind::kValues / 32;
  const int four = static_cast<int>(eight % 4), s = static_cast<int>(part % kParts);
  for (long long row = blockIdx.y; row < call.rows; row += gridDim.y) {
    const long long from = call.by_token ? tokens[row] : row;
    const Byte *const block = w + from * call.row_bytes + part / kParts * Kind::kBytes;
    unsigned codes[2];
    Scales scales;
    Kind::codes(block, s, four, codes);
    Kind::scales(block, s, scales);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int own = Kind::kScales == 2 ? i / 4 : 0;
      const long long column = 32 * part + 16 * (i / 4) + 4 * four + i % 4;
      float value = scales.scale[own] * code_at<Kind>(codes[i / 4], i % 4);
      if (Kind::kHasMinimum) value -= scales.minimum[own];
      if (call.learned) value += widen(learned[positions[row] * call.k + column]);
      out[row * call.k + column] = convert<Out>::from(value);
    }
  }
}

}  // namespace pk
