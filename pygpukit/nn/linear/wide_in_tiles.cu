// wide_in_tiles.cu: in_tiles.cu's products for many rows, with the same bits.
#include "overlap.cuh"
#include "wide_in_tiles.cuh"

namespace pk {

// 32 rows of x a block; blocks in y are further rows.
template <class T, class Out, class Kind, int kEpilogue>
__global__ void __launch_bounds__(32 * kWideWarps, 3)
    wide_in_tiles(const T *x, const Byte *w, const T *bias, Out *out, const __grid_constant__ TilesCall call) {
  using X = WideRows<Kind>;
  constexpr int kSides = kEpilogue == kSilu ? 2 : 1, kTiles = kWideTiles;
  extern __shared__ uint4 staged[];
  Byte *const memory = reinterpret_cast<Byte *>(staged);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, four = lane % 4;
  const int tiles = static_cast<int>(call.n / kTileRows), units = static_cast<int>(call.k / kChunk);
  const int tile = static_cast<int>(blockIdx.x) * (kWideWarps / kSides) + warp / kSides, side = warp % kSides;
  const bool there = tile < tiles;
  const Byte *const own = w + static_cast<long long>(side * tiles + tile) * units * kUnitBytes<Kind>;
  const long long first = static_cast<long long>(blockIdx.y) * 8 * kTiles;
  const int rows = static_cast<int>(call.rows - first < 8 * kTiles ? call.rows - first : 8 * kTiles);
  x += first * call.k, out += first * call.stride;
  Unit<Kind, true> unit;
  if (there) unit.load_codes(own, lane), unit.load_scales(own, lane);
  let_next_begin();
  await_previous();
  X::ask(memory, 0, x, rows, call.k);
  float total[kTiles][4] = {}, sums[kTiles][4][4] = {};
  int turn = 0;
#pragma unroll 1
  for (int at = 0; at >= 0; turn ^= 1) {
    const int next = unit_after(at, units);
    X::ask(memory + (turn ^ 1) * X::kBytes, next, x, rows, call.k);
    wait_for_stage<1>();
    __syncthreads();
    if (there)
      add_unit<Kind, kTiles>(unit, own + static_cast<long long>(next) * kUnitBytes<Kind>, next >= 0,
                             reinterpret_cast<const bfloat16_t *>(memory + turn * X::kBytes), X::kPitch / 2, 8 * kTiles,
                             sums);
    if (at + kWarps >= units) {
#pragma unroll
      for (int i = 0; i < kTiles; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          total[i][j] += (sums[i][0][j] + sums[i][1][j]) + (sums[i][2][j] + sums[i][3][j]);
#pragma unroll
          for (int four_of = 0; four_of < 4; ++four_of) sums[i][four_of][j] = 0.0f;
        }
    }
    __syncthreads();
    at = next;
  }
  auto *const others = reinterpret_cast<float *>(memory) + warp / kSides * (kTiles * 4 * 32) + lane;
  if constexpr (kEpilogue == kSilu) {
    if (side)
#pragma unroll
      for (int i = 0; i < 4 * kTiles; ++i) others[32 * i] = (&total[0][0])[i];
    __syncthreads();
    if (side) return;
  }
  if (!there) return;
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const long long n = static_cast<long long>(tile) * kTileRows + group + 8 * (j / 2);
      const int row = 8 * i + 2 * four + j % 2;
      if (row >= rows) continue;
      Out *const to = out + row * call.stride + call.first + n;
      float value = total[i][j], other = kEpilogue == kAdd ? widen(*to) : 0.0f;
      if constexpr (kEpilogue == kSilu) other = others[32 * (4 * i + j)];
      if (call.has_bias) {
        value += widen(bias[n]);
        if (kEpilogue == kSilu) other += widen(bias[call.n + n]);
      }
      finish<kEpilogue>(to, value, other);
    }
}

}  // namespace pk
