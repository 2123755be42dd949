// block_scaled.cu: products of fp4 with fp4 on the tensor cores of SM 12.0, which take the scales of blocks, too.
//
// A block makes 128 x 128 of c from 128 of k at a time, of which the next are read while one is multiplied. Each of its
// eight warps makes 32 x 64. A sum is with one lane, in ascending order of k.
#include "fp4_mma.cuh"

namespace pk {

constexpr int kSide = 128;     // rows, and columns, of a block's tile
constexpr int kWarpRows = 32;  // of a warp's
constexpr int kWarpColumns = 64;
constexpr int kBlocksThreads = 256;
constexpr int kStepBytes = 64;   // of codes along k, a step
constexpr int kPitch = 64 + 16;  // bytes from one line in shared memory to the next: lanes of a warp in different banks
constexpr int kHalves = 2;       // of a step: what one instruction takes

struct Fp4Blocks {
  long long m, n, k;  // k: whole 64
  float factor;
  int scaled[2];  // by *scale_a, by *scale_b
  int unused;
};

// Scales of 64 of k as one number.
template <int Block>
struct scales_of_64 {
  using type = unsigned;
};
template <>
struct scales_of_64<32> {
  using type = unsigned short;
};

// What a thread reads of a step: two of 512 pieces of a's lines and of b's, and of the scales.
template <class Packed>
struct Fp4Step {
  uint4 codes[2][2];
  Packed scales[2];
};

// c = factor * a @ b^T: codes of m and n dense rows of k, from a multiple of 16 bytes on; their scales.
template <class Out, class Scale, int Block>
__global__ void __launch_bounds__(kBlocksThreads)
    fp4_blocks(const unsigned char *a, const unsigned char *b, const Scale *a_scales, const Scale *b_scales,
               const float *scale_a, const float *scale_b, Out *c, const __grid_constant__ Fp4Blocks p) {
  using Packed = typename scales_of_64<Block>::type;
  __shared__ __align__(16) unsigned char lines[2][kSide][kPitch];
  __shared__ Packed scales[2][kSide][kHalves];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, group = lane / 4, four = lane % 4;
  const long long across = (p.n + kSide - 1) / kSide;
  const long long row0 = blockIdx.x / across * kSide, column0 = blockIdx.x % across * kSide;
  const long long first[2] = {row0, column0}, extent[2] = {p.m, p.n}, pitch = p.k / 2;
  const int own_row = warp / 2 * kWarpRows, own_column = warp % 2 * kWarpColumns;
  const auto read = [&](long long byte0) {
    Fp4Step<Packed> step = {};
    for (int side = 0; side < 2; ++side) {
      const unsigned char *const codes = side ? b : a;
      for (int i = 0; i < 2; ++i) {
        const long long line = first[side] + thread / 4 + 64 * i, byte = byte0 + thread % 4 * 16;
        if (line < extent[side] && byte < pitch)
          step.codes[side][i] = *reinterpret_cast<const uint4 *>(codes + line * pitch + byte);
      }
      const Packed *const packed = reinterpret_cast<const Packed *>(side ? b_scales : a_scales);
      const long long line = first[side] + thread / 2, half = byte0 / 32 + thread % 2;
      if (line < extent[side] && half < p.k / 64) step.scales[side] = packed[line * (p.k / 64) + half];
    }
    return step;
  };
  float sums[2][8][4] = {};
  Fp4Step<Packed> next = read(0);
#pragma unroll 1
  for (long long byte = 0; byte < pitch; byte += kStepBytes) {
    for (int side = 0; side < 2; ++side) {
      for (int i = 0; i < 2; ++i)
        *reinterpret_cast<uint4 *>(&lines[side][thread / 4 + 64 * i][thread % 4 * 16]) = next.codes[side][i];
      scales[side][thread / 2][thread % 2] = next.scales[side];
    }
    __syncthreads();
    next = read(byte + kStepBytes);
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      const auto codes = [&](int side, int line, int further) {
        return *reinterpret_cast<const unsigned *>(&lines[side][line][half * 32 + further * 16 + four * 4]);
      };
      unsigned left[2][4], of_left[2];
      for (int i = 0; i < 2; ++i) {
        const int line = own_row + 16 * i + group;
        for (int j = 0; j < 4; ++j) left[i][j] = codes(0, line + j % 2 * 8, j / 2);
        of_left[i] = scales[0][line + four % 2 * 8][half];
      }
      for (int j = 0; j < 8; ++j) {
        const int line = own_column + 8 * j + group;
        const unsigned right[2] = {codes(1, line, 0), codes(1, line, 1)}, of_right = scales[1][line][half];
        for (int i = 0; i < 2; ++i) mma_blocks<Scale, Block>(sums[i][j], left[i], right, of_left[i], of_right);
      }
    }
    __syncthreads();
  }
  float factor = p.factor;
  if (p.scaled[0]) factor *= *scale_a;
  if (p.scaled[1]) factor *= *scale_b;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int e = 0; e < 4; ++e) {
        const long long row = row0 + own_row + 16 * i + group + e / 2 * 8;
        const long long column = column0 + own_column + 8 * j + 2 * four + e % 2;
        if (row < p.m && column < p.n) c[row * p.n + column] = convert<Out>::from(factor * sums[i][j][e]);
      }
    }
  }
}

}  // namespace pk
