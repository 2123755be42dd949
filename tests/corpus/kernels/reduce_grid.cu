// reduce_grid.cu: a cooperative launch: every block leaves its sum, the grid synchronises, block 0 adds them up.
#include <cooperative_groups.h>
#define BLOCK 64
namespace cg = cooperative_groups;

__global__ void reduce_grid(const int *in, int *parts, int *sum, int n) {
  __shared__ int sums[BLOCK];
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  int value = 0;
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) value += in[i];
  sums[threadIdx.x] = value;
  block.sync();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    block.sync();
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = sums[0];
  grid.sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    int total = 0;
    for (int k = 0; k < gridDim.x; ++k) total += parts[k];
    *sum = total;
  }
}
