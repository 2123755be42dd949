// wide_in_blocks.cuh: products of up to 64 rows at a time with a weight in blocks of few bits, for prompts.
//
// Each warp of a block takes 16 kHalves lines of the weight, columns of the result, or half as many of kSilu: a code is
// unpacked once for 64 rows of x, which lie in shared memory. Chunks come in the order in which add_rows() sums them,
// those of its first warp, then those of its second: a row has the same bits by both.
#pragma once
#include "in_blocks.cuh"

namespace pk {

constexpr int kWideRows = 64;               // of x, that a block takes
constexpr int kWideLines = 16;              // of the weight, of which a warp takes kHalves times as many
constexpr int kRowPitch = 2 * kChunk + 32;  // bytes: four rows are in different banks

template <class Kind, int kHalves>
struct WideStage {  // a chunk of all rows of x, and then of the lines of each warp
  static constexpr int kX = kWideRows * kRowPitch, kWarp = kHalves * kWideLines * Staged<Kind>::kPitch;
  static constexpr int kBytes = kX + kWarps * kWarp;
};

// Chunks in the order of their sums: 0, 8, 16, ..., 1, 9, ...; -1 behind the last.
__device__ __forceinline__ int next_chunk(int chunk, int count) {
  if (chunk + kWarps < count) return chunk + kWarps;
  const int first = chunk % kWarps + 1;
  return first < kWarps && first < count ? first : -1;
}

// One cp.async group, empty where chunk is -1: of x, and of a warp's lines, of which `column` is the first.
template <class Kind, int kHalves, int kEpilogue>
__device__ __forceinline__ void ask_wide(Byte *stage, int chunk, const bfloat16_t *x, int rows, const Byte *w,
                                         long long above, long long column, const BlocksCall &call) {
  using S = Staged<Kind>;
  using Wide = WideStage<Kind, kHalves>;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, four = lane % 4;
  if (chunk >= 0) {
    const long long k = static_cast<long long>(chunk) * kChunk + 8 * lane;
    if (k < call.k) {
#pragma unroll
      for (int i = 0; i < kWideRows / kWarps; ++i) {
        const int row = warp + kWarps * i;
        copy_ahead<8>(reinterpret_cast<bfloat16_t *>(stage + row * kRowPitch) + 8 * lane,
                      x + (row < rows ? row : rows - 1) * call.k + k);
      }
    }
    const long long begin = static_cast<long long>(chunk) * S::kBytes, left = call.row_bytes - begin;
    const int bytes = left < S::kBytes ? static_cast<int>(left) : S::kBytes;
#pragma unroll
    for (int i = 0; i < 2 * kHalves; ++i) {
      const long long line = above + weight_row<kHalves * kWideLines, kEpilogue>(column, 8 * i + lane / 4, call.n);
      const long long at = line * call.row_bytes + begin, from = at - at % 16 + 16 * four, rest = call.size - from;
      const int end = static_cast<int>(at % 16) + bytes - 16 * four;
      Byte *const to = stage + Wide::kX + warp * Wide::kWarp + (8 * i + lane / 4) * S::kPitch + 16 * four;
#pragma unroll
      for (int j = 0; j < (S::kPieces + 3) / 4; ++j)
        if (64 * j < end) {
          if (rest >= 64 * j + 16)
            copy_ahead<16>(to + 64 * j, w + from + 64 * j);
          else
            copy_ahead<16>(to + 64 * j, w + from + 64 * j, static_cast<int>(rest - 64 * j));
        }
    }
  }
  end_stage();
}

// sums += a chunk's products, parts of 32 values. lines: that the lane reads; x: of row `group`.
template <class Kind, int kHalves>
__device__ __forceinline__ void add_wide(const Byte *const (&lines)[2 * kHalves], const Byte *x, int parts,
                                         float (&sums)[kHalves][kWideRows / 8][4]) {
  constexpr int kParts = Kind::kValues / 32;
#pragma unroll 1
  for (int s = 0; s < parts; ++s) {
    PartOfWeight weight[kHalves];
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      const Byte *const blocks[2] = {lines[2 * half] + s / kParts * Kind::kBytes,
                                     lines[2 * half + 1] + s / kParts * Kind::kBytes};
      weight[half].read(Kind{}, blocks, s % kParts);
    }
#pragma unroll
    for (int tile = 0; tile < kWideRows / 8; ++tile) {
      PartOfX own;
      own.read(reinterpret_cast<const bfloat16_t *>(x + 8 * tile * kRowPitch) + 32 * s, true);
      Totals totals;
      totals.add<Kind>(own);
#pragma unroll
      for (int half = 0; half < kHalves; ++half) add_part<Kind>(weight[half], own, totals, sums[half][tile]);
    }
  }
}

// out = epilogue(x w^T + bias) of up to 64 rows of x. memory: kStages of WideStage; above: rows of the weight above
// those of this product. bias: the first is that of the first column.
template <class Kind, int kHalves, int kStages, int kEpilogue, class T, class Out>
__device__ __forceinline__ void add_wide_rows(Byte *memory, const T *x, int rows, const Byte *w, long long above,
                                              const T *bias, Out *out, const BlocksCall &call) {
  using S = Staged<Kind>;
  using Wide = WideStage<Kind, kHalves>;
  constexpr int kOwn = kHalves * kWideLines / (kEpilogue == kSilu ? 2 : 1);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, four = lane % 4;
  const long long column = (static_cast<long long>(blockIdx.x) * kWarps + warp) * kOwn;
  int skews[2 * kHalves];  // bytes from a multiple of 16 to where the lines begin that this lane reads
#pragma unroll
  for (int i = 0; i < 2 * kHalves; ++i) {
    const long long line = above + weight_row<kHalves * kWideLines, kEpilogue>(column, 8 * i + group, call.n);
    skews[i] = static_cast<int>(line * call.row_bytes % 16);
  }
  const int count = static_cast<int>((call.k + kChunk - 1) / kChunk);
  int ahead = 0, at = 0;
#pragma unroll
  for (int i = 0; i < kStages; ++i) {
    ask_wide<Kind, kHalves, kEpilogue>(memory + i * Wide::kBytes, ahead, x, rows, w, above, column, call);
    if (ahead >= 0) ahead = next_chunk(ahead, count);
  }
  float total[kHalves][kWideRows / 8][4] = {}, sums[kHalves][kWideRows / 8][4] = {};
#pragma unroll 1
  for (int chunk = 0; chunk >= 0; chunk = next_chunk(chunk, count)) {
    wait_for_stage<kStages - 1>();
    __syncthreads();
    Byte *const stage = memory + at * Wide::kBytes;
    const Byte *const own = stage + Wide::kX + warp * Wide::kWarp + group * S::kPitch;
    const Byte *from[2 * kHalves];
#pragma unroll
    for (int i = 0; i < 2 * kHalves; ++i)
      from[i] = own + 8 * i * S::kPitch + (skews[i] + chunk % 16 * (S::kBytes % 16)) % 16;
    const long long k = static_cast<long long>(chunk) * kChunk;
    add_wide<Kind, kHalves>(from, stage + group * kRowPitch + 8 * four,
                            call.k - k < kChunk ? static_cast<int>(call.k - k) / 32 : kChunk / 32, sums);
    if (chunk + kWarps >= count) {
#pragma unroll
      for (int i = 0; i < kHalves * kWideRows / 2; ++i) {
        float &sum = (&sums[0][0][0])[i];
        (&total[0][0][0])[i] += sum;
        sum = 0.0f;
      }
    }
    __syncthreads();
    ask_wide<Kind, kHalves, kEpilogue>(stage, ahead, x, rows, w, above, column, call);
    if (ahead >= 0) ahead = next_chunk(ahead, count);
    at = at + 1 == kStages ? 0 : at + 1;
  }
  // Of kSilu what stands beside a sum is in the other half, or of one half eight lines further.
  constexpr int kPairs = kEpilogue == kSilu && kHalves == 1 ? 2 : 4;
#pragma unroll
  for (int half = 0; half < (kEpilogue == kSilu ? 1 : kHalves); ++half)
#pragma unroll
    for (int tile = 0; tile < kWideRows / 8; ++tile)
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        const long long n = column + 16 * half + group + 8 * (i / 2);
        const int row = 8 * tile + 2 * four + i % 2;
        if (n >= call.n || row >= rows) continue;
        Out *const to = out + row * call.stride + call.first + n;
        float value = total[half][tile][i], other = kEpilogue == kAdd ? widen(*to) : 0.0f;
        if (kEpilogue == kSilu) other = kHalves == 1 ? total[0][tile][(i + 2) % 4] : total[kHalves - 1][tile][i];
        if (call.has_bias) {
          value += widen(bias[n]);
          if (kEpilogue == kSilu) other += widen(bias[call.n + n]);
        }
        finish<kEpilogue>(to, value, other);
      }
}

}  // namespace pk
