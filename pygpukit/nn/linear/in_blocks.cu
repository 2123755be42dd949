// in_blocks.cu: products of rows with a weight in blocks of few bits, and its values.
#include "in_blocks.cuh"
#include "overlap.cuh"

namespace pk {

// kTiles times 8 rows of x a block; blocks in y are further rows.
template <class T, class Out, class Kind, int kTiles, int kEpilogue>
__global__ void __launch_bounds__(kThreads, kTiles == 1 ? 2 : 1)
    linear_in_blocks(const T *x, const Byte *w, const T *bias, Out *out, const __grid_constant__ BlocksCall call) {
  using S = Staged<Kind>;
  extern __shared__ uint4 staged[];
  __shared__ Parts<kTiles> parts;
  Byte *const memory = reinterpret_cast<Byte *>(staged) + threadIdx.x / 32 * S::kWarp;
  Chunks<Kind, kEpilogue> chunks(memory, w, call, 0);
#pragma unroll
  for (int i = 0; i < S::kStages; ++i) chunks.ask(i);
  let_next_begin();
  await_previous();
  const long long first = static_cast<long long>(blockIdx.y) * 8 * kTiles;
  const int rows = static_cast<int>(call.rows - first < 8 * kTiles ? call.rows - first : 8 * kTiles);
  add_rows<Kind, kTiles>(chunks, memory, x + first * call.k, rows, bias, out + first * call.stride, call, parts);
}

struct ValuesCall {
  long long k, row_bytes, rows;
  int by_token, learned;  // whether rows are those of tokens, else all; whether positions have rows, too
  int ordered, unused;    // whether columns have an order of their own
};

// Rows of values, those of tokens or all: a thread for 8 of 32 values, in blocks of y a row each.
template <class T, class Out, class Kind>
__global__ void __launch_bounds__(kThreads)
    values_of_blocks(const int *tokens, const int *positions, const Byte *w, const int *order, const T *learned,
                     Out *out, const __grid_constant__ ValuesCall call) {
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
    for (int half = 0; half < 2; ++half) {
      const long long at = 32 * part + 16 * half + 4 * four;
      const int own = Kind::kScales == 2 ? half : 0;
      float value[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        value[i] = scales.scale[own] * code_at<Kind>(codes[half], i);
        if (Kind::kHasMinimum) value[i] -= scales.minimum[own];
      }
      if (call.ordered || call.learned) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const long long column = call.ordered ? order[at + i] : at + i;
          if (call.learned) value[i] += widen(learned[positions[row] * call.k + column]);
          out[row * call.k + column] = convert<Out>::from(value[i]);
        }
      } else {
        Pack<Out, 4> together;
#pragma unroll
        for (int i = 0; i < 4; ++i) together.v[i] = convert<Out>::from(value[i]);
        *reinterpret_cast<Pack<Out, 4> *>(out + row * call.k + at) = together;
      }
    }
  }
}

}  // namespace pk
