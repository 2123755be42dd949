// gemv.cu: products of half precision with weights of fp4, as fast as the weight can be read.
//
// A weight is decoded to the type of the rows, exactly, with the scale of its block, and is the left operand of tensor
// cores, whose sums are float32. The eight warps of a block take the pieces of k in turn and their sums are added in
// the warps' order: a row's bits depend on its own numbers and the weight alone.
#include "fp4.cuh"
#include "mma.cuh"

namespace pk {

constexpr int kFp4Warps = 8;
constexpr int kFp4Weights = 16;  // rows of the weight, columns of c, that a block makes
constexpr int kFp4Rows = 8;      // rows of a that one product takes
constexpr int kPiece = 128;      // of k: 32 a lane, of which four have a row

struct Fp4Gemv {
  long long m, n, k;    // k: of the codes, whole 64
  long long a_columns;  // of k that a has, whole 8, and where its rows are
  long long a_row;
  float factor;
  int scaled, wide, unused;  // scaled: by *scale, too; wide: c is float
};

// 16 bytes of codes and their scales.
struct Chunk {
  uint4 codes;
  unsigned scales;
};

// Two of eight codes, those numbered `first` and first + 4, as T has their bits: 2^-126 of the numbers, or 2^-14.
template <int First>
__device__ __forceinline__ Pair codes_of(bfloat16_t, unsigned codes) {
  constexpr int kShift = 6 - 4 * First;
  const unsigned numbers = kShift > 0 ? codes << (kShift > 0 ? kShift : 0) : codes >> (kShift > 0 ? 0 : -kShift);
  return (numbers & 0x01c001c0u) | (codes << (12 - 4 * First) & 0x80008000u);
}
template <int First>
__device__ __forceinline__ Pair codes_of(half_t, unsigned codes) {
  constexpr int kShift = 9 - 4 * First;
  const unsigned numbers = kShift > 0 ? codes << (kShift > 0 ? kShift : 0) : codes >> (kShift > 0 ? 0 : -kShift);
  return (numbers & 0x0e000e00u) | (codes << (12 - 4 * First) & 0x80008000u);
}

template <class T>
__device__ __forceinline__ Pair twice(float value) {
  const unsigned bits = convert<T>::from(value).bits;
  return bits | bits << 16;
}
// The numbers times 2^-8, with a scale of E4M3: of so few bits that both types have them all.
constexpr float kGemvFactor = 256.0f;
__device__ __forceinline__ Pair factor_of(bfloat16_t, e4m3_t scale) {
  return twice<bfloat16_t>(widen(scale) * 3.3230699894622e35f);  // 2^118
}
__device__ __forceinline__ Pair factor_of(half_t, e4m3_t scale) { return twice<half_t>(widen(scale) * 64.0f); }
__device__ __forceinline__ Pair factor_of(bfloat16_t, e8m0_t scale) { return twice<bfloat16_t>(widen(scale)); }

template <class T, class Scale>
__device__ __forceinline__ Pair scaled(T kind, Scale, Pair codes, Pair factor) {
  return multiply(kind, codes, factor);
}
// A power of two may be too large or too small for its product with 2^126.
__device__ __forceinline__ Pair scaled(bfloat16_t kind, e8m0_t, Pair codes, Pair factor) {
  return multiply(kind, multiply(kind, codes, 0x7e807e80u), factor);
}
template <class Scale>
constexpr float kLeft = kGemvFactor;
template <>
constexpr float kLeft<e8m0_t> = 1.0f;

// c = factor * a @ w^T. a: m rows of T, from a multiple of 16 bytes on, as each row. codes: n dense rows of whole 64,
// from a multiple of 16 bytes on. A block makes kFp4Weights columns of Tiles * kFp4Rows rows.
template <class T, class Scale, int Block, int Tiles>
__global__ void __launch_bounds__(32 * kFp4Warps)
    fp4_gemv(const T *a, const unsigned char *codes, const Scale *scales, const float *scale, void *c,
            const __grid_constant__ Fp4Gemv p) {
  constexpr int kScales = 32 / Block;  // of a lane's piece
  __shared__ float partial[kFp4Warps][Tiles * kFp4Rows][kFp4Weights + 1];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, four = lane % 4;
  const long long weight0 = static_cast<long long>(blockIdx.x) * kFp4Weights;
  const long long row0 = static_cast<long long>(blockIdx.y) * (Tiles * kFp4Rows);
  const auto read = [&](long long piece, int which) {
    Chunk chunk = {};
    const long long row = weight0 + group + 8 * which, k = piece * kPiece + 32 * four;
    if (row < p.n && k < p.k) {
      chunk.codes = *reinterpret_cast<const uint4 *>(codes + row * (p.k / 2) + k / 2);
      const Scale *const from = scales + (row * (p.k / Block) + k / Block);
      for (int i = 0; i < kScales; ++i) chunk.scales |= static_cast<unsigned>(from[i].bits) << 8 * i;
    }
    return chunk;
  };
  float sums[Tiles][4] = {};
  Chunk next[2] = {read(warp, 0), read(warp, 1)};
#pragma unroll 1
  for (long long piece = warp; piece * kPiece < p.k; piece += kFp4Warps) {
    const Chunk now[2] = {next[0], next[1]};
    for (int r = 0; r < 2; ++r) next[r] = read(piece + kFp4Warps, r);
    Pair factors[2][kScales];
    for (int r = 0; r < 2; ++r)
      for (int i = 0; i < kScales; ++i)
        factors[r][i] = factor_of(T{}, Scale{static_cast<unsigned char>(now[r].scales >> 8 * i)});
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      Pair weights[2][4];  // of each step of 16 of k
      for (int r = 0; r < 2; ++r) {
        const unsigned eight = reinterpret_cast<const unsigned *>(&now[r].codes)[word];
        const Pair factor = factors[r][word * kScales / 4];
        weights[0][r] = scaled(T{}, Scale{}, codes_of<0>(T{}, eight), factor);
        weights[0][2 + r] = scaled(T{}, Scale{}, codes_of<1>(T{}, eight), factor);
        weights[1][r] = scaled(T{}, Scale{}, codes_of<2>(T{}, eight), factor);
        weights[1][2 + r] = scaled(T{}, Scale{}, codes_of<3>(T{}, eight), factor);
      }
      const long long k = piece * kPiece + 32 * four + 8 * word;
      for (int tile = 0; tile < Tiles; ++tile) {
        const long long row = row0 + tile * kFp4Rows + group;
        uint4 numbers = {0, 0, 0, 0};
        if (row < p.m && k < p.a_columns) numbers = *reinterpret_cast<const uint4 *>(a + row * p.a_row + k);
        const Pair first[2] = {(numbers.x & 0xffffu) | numbers.z << 16, numbers.x >> 16 | (numbers.z & 0xffff0000u)};
        const Pair second[2] = {(numbers.y & 0xffffu) | numbers.w << 16, numbers.y >> 16 | (numbers.w & 0xffff0000u)};
        mma(T{}, sums[tile], weights[0], first);
        mma(T{}, sums[tile], weights[1], second);
      }
    }
  }
  for (int tile = 0; tile < Tiles; ++tile)
    for (int i = 0; i < 4; ++i) partial[warp][tile * kFp4Rows + 2 * four + i % 2][group + i / 2 * 8] = sums[tile][i];
  __syncthreads();
  const float factor = p.scaled ? p.factor * *scale : p.factor;
  for (int i = threadIdx.x; i < Tiles * kFp4Rows * kFp4Weights; i += 32 * kFp4Warps) {
    const int own_row = i / kFp4Weights, own_weight = i % kFp4Weights;
    const long long row = row0 + own_row, column = weight0 + own_weight;
    if (row >= p.m || column >= p.n) continue;
    float sum = 0.0f;
    for (int w = 0; w < kFp4Warps; ++w) sum += partial[w][own_row][own_weight];
    const float result = factor * (kLeft<Scale> * sum);
    if (p.wide) {
      static_cast<float *>(c)[row * p.n + column] = result;
    } else {
      static_cast<T *>(c)[row * p.n + column] = convert<T>::from(result);
    }
  }
}

}  // namespace pk
