// bit_runs.cu: of each word, its set bits, its highest one, its zeros below, and the word turned by as many places.
#include <cuda/std/array>
#include <cuda/std/bit>

__global__ void bit_runs(const unsigned *words, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = words[i];
  cuda::std::array<unsigned, 4> found = {};
  found[0] = cuda::std::popcount(x);
  found[1] = cuda::std::bit_width(x);
  found[2] = cuda::std::countr_zero(x);
  found[3] = cuda::std::rotl(x, cuda::std::popcount(x));
  for (int k = 0; k < 4; ++k) out[4 * i + k] = found[k];
}
