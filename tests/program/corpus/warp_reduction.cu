// A sum by shuffles in a warp, shared memory between warps, and an atomic addition between blocks.
// output: 499500
#include <cstdio>

__inline__ __device__ int warp_sum(int value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}

__global__ void sum(const int *values, int n, int *total) {
  __shared__ int warps[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int value = warp_sum(i < n ? values[i] : 0);
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = warp_sum(lane < int(blockDim.x) / 32 ? warps[lane] : 0);
    if (lane == 0) atomicAdd(total, value);
  }
}

int main() {
  const int n = 1000;
  int host[n], *values, *total, result = 0;
  for (int i = 0; i < n; ++i) host[i] = i;
  cudaMalloc(&values, sizeof host);
  cudaMalloc(&total, sizeof(int));
  cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemset(total, 0, sizeof(int));
  sum<<<4, 256>>>(values, n, total);
  cudaMemcpy(&result, total, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("%d\n", result);
  cudaFree(values);
  cudaFree(total);
  return result == n * (n - 1) / 2 ? 0 : 1;
}
