// encoding.cu: numbers to fp4 with scales of blocks, and back.
#include "fp4.cuh"

namespace pk {

struct Fp4Matrix {
  long long rows, columns;  // of the numbers
  long long row, column;    // elements from one row, one column to the next
  long long start;          // elements from the pointer to the first element
  long long blocks;         // of a row
  int scaling, unused;      // Fp4Scaling
};

enum Fp4Scaling { kNoScale, kStated, kMeasured };  // of all numbers, beside those of blocks

__device__ __forceinline__ unsigned magnitude_of(float value) { return __float_as_uint(value) & 0x7fffffffu; }
constexpr unsigned kInfinity = 0x7f800000u;

// largest: at least the bits of the largest magnitude that is finite. Bits of floats are in the order of the floats.
template <class T>
__global__ void fp4_largest(const T *x, unsigned *largest, const __grid_constant__ Fp4Matrix p) {
  unsigned max_bits = 0;
  const long long size = p.rows * p.columns, step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step) {
    const unsigned here = magnitude_of(widen(x[p.start + i / p.columns * p.row + i % p.columns * p.column]));
    if (here < kInfinity && here > max_bits) max_bits = here;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const unsigned other = __shfl_xor_sync(0xffffffffu, max_bits, lanes);
    if (other > max_bits) max_bits = other;
  }
  if (threadIdx.x % 32 == 0 && max_bits) atomicMax(largest, max_bits);
}

// The scale of all numbers that lets the largest be 6 times the largest scale of a block; 1 where all are 0.
__device__ __forceinline__ float scale_of_all(float largest) {
  const float scale = largest / 2688.0f;
  return scale > 0.0f ? scale : 1.0f;
}

// The scale of a block with that largest magnitude, divided by the scale of all: rounded to nearest even, at most 448.
__device__ __forceinline__ e4m3_t scale_of_block(e4m3_t, float largest, float of_all) {
  const float unrounded = largest / of_all / 6.0f;
  return to_small_float<e4m3_t>(unrounded < 448.0f ? unrounded : 448.0f);
}
// The power of two with which the largest is from 4 to below 8; what is above 6 becomes 6.
__device__ __forceinline__ e8m0_t scale_of_block(e8m0_t, float largest, float) {
  const unsigned exponent = __float_as_uint(largest) >> 23;
  return {static_cast<unsigned char>(exponent > 2 ? exponent - 2 : 0)};
}
__device__ __forceinline__ e4m3_t nan_of(e4m3_t) { return {0x7f}; }
__device__ __forceinline__ e8m0_t nan_of(e8m0_t) { return {0xff}; }

// A thread makes one block: codes, dense rows of blocks * Block / 2 bytes, with zeros from the last column on, and its
// scale. of_all: the scale of all, which is divided out first; if kMeasured, it is written here, from the bits in
// largest. A block with a number that is not finite gets a scale of NaN.
template <class T, class Scale, int Block>
__global__ void fp4_quantise(const T *x, unsigned char *codes, Scale *scales, float *of_all, const unsigned *largest,
                             const __grid_constant__ Fp4Matrix p) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  float all = 1.0f;
  if (p.scaling == kStated) all = *of_all;
  if (p.scaling == kMeasured) {
    all = scale_of_all(__uint_as_float(*largest));
    if (i == 0) *of_all = all;
  }
  if (i >= p.rows * p.blocks) return;
  const long long first = i % p.blocks * Block;
  const T *const line = x + (p.start + i / p.blocks * p.row + first * p.column);
  const long long left = p.columns - first;
  float values[Block];
  unsigned max_bits = 0;
  for (int k = 0; k < Block; ++k) {
    values[k] = k < left ? widen(line[k * p.column]) : 0.0f;
    const unsigned here = magnitude_of(values[k]);
    if (here > max_bits) max_bits = here;
  }
  const Scale scale = max_bits < kInfinity ? scale_of_block(Scale{}, __uint_as_float(max_bits), all) : nan_of(Scale{});
  const float step = widen(scale) * all;
  scales[i] = scale;
  for (int byte = 0; byte < Block / 2; ++byte) {
    unsigned both = 0;
    for (int k = 0; k < 2; ++k) {
      const float value = values[2 * byte + k];
      const unsigned code = step > 0.0f ? to_small_float<e2m1_t>(value / step).bits : 0u;
      both |= code << 4 * k;
    }
    codes[i * (Block / 2) + byte] = static_cast<unsigned char>(both);
  }
}

// The numbers again, a thread a block: dense rows of whole blocks.
template <class T, class Scale, int Block>
__global__ void fp4_numbers(const unsigned char *codes, const Scale *scales, const float *of_all, T *x,
                            const __grid_constant__ Fp4Matrix p) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.rows * p.blocks) return;
  const float all = p.scaling == kNoScale ? 1.0f : *of_all, scale = widen(scales[i]);
  for (int k = 0; k < Block; ++k) {
    const unsigned char code = codes[i * (Block / 2) + k / 2] >> k % 2 * 4 & 15;
    x[i * Block + k] = convert<T>::from(widen(e2m1_t{code}) * scale * all);
  }
}

}  // namespace pk
