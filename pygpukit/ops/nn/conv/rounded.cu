// rounded.cu: floats as tf32, to nearest, to even from the middle.
#include "overlap.cuh"
#include "pack.cuh"

namespace pk {

__device__ __forceinline__ float to_nearest_tf32(float value) {
  const unsigned bits = __float_as_uint(value);
  return __uint_as_float(value != value ? 0x7fffffffu : (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

// fours: of floats, dense, from whole 16 bytes on.
__global__ void __launch_bounds__(256) round_to_tf32(const float *from, float *to, long long fours) {
  let_next_begin();
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i >= fours) return;
  Pack<float, 4> values = load<4>(from + 4 * i);
#pragma unroll
  for (int k = 0; k < 4; ++k) values.v[k] = to_nearest_tf32(values.v[k]);
  store(to + 4 * i, values);
}

}  // namespace pk
