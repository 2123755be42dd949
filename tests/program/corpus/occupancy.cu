// How many blocks fit, and the block that keeps a multiprocessor busiest.
// output: a block of 1 to 1024 threads: yes
// output: with more shared memory no more blocks: yes
// output: attributes: 256 bytes of shared memory, at most 1024 threads
#include <cstdio>

__global__ void fill(float *out) {
  __shared__ float room[64];
  room[threadIdx.x % 64] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = room[threadIdx.x % 64];
}

int main() {
  int grid = 0, block = 0, few = 0, many = 0;
  cudaOccupancyMaxPotentialBlockSize(&grid, &block, fill, 0, 0);
  std::printf("a block of 1 to 1024 threads: %s\n", block >= 1 && block <= 1024 && grid >= 1 ? "yes" : "no");
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&many, fill, 128, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&few, fill, 128, 40000);
  std::printf("with more shared memory no more blocks: %s\n", few >= 1 && few <= many ? "yes" : "no");
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, fill);
  std::printf("attributes: %zu bytes of shared memory, at most %d threads\n", attributes.sharedSizeBytes,
              attributes.maxThreadsPerBlock);
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
