// All blocks of a grid wait for each other twice: the sum of the blocks' sums.
// output: 8256
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

__global__ void sum(const int *values, int *partial, int *total) {
  const cg::grid_group grid = cg::this_grid();
  if (threadIdx.x == 0) {
    int own = 0;
    for (int i = 0; i < int(blockDim.x); ++i) own += values[blockIdx.x * blockDim.x + i];
    partial[blockIdx.x] = own;
  }
  grid.sync();
  if (grid.thread_rank() == 0) {
    *total = 0;
    for (int i = 0; i < int(gridDim.x); ++i) *total += partial[i];
  }
}

int main() {
  const int blocks = 4, threads = 32, n = blocks * threads;
  int host[n], *values, *partial, *total, result = 0;
  for (int i = 0; i < n; ++i) host[i] = i + 1;
  cudaMalloc(&values, sizeof host);
  cudaMalloc(&partial, blocks * sizeof(int));
  cudaMalloc(&total, sizeof(int));
  cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
  void *arguments[] = {&values, &partial, &total};
  const cudaError_t status =
      cudaLaunchCooperativeKernel(reinterpret_cast<void *>(sum), dim3(blocks), dim3(threads), arguments, 0, nullptr);
  if (status != cudaSuccess) std::printf("%s\n", cudaGetErrorString(status));
  cudaMemcpy(&result, total, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("%d\n", result);
  cudaFree(values);
  cudaFree(partial);
  cudaFree(total);
  return result == n * (n + 1) / 2 ? 0 : 1;
}
