// Shared memory whose size the launch says, more of it than without consent.
// output: reversed 63 to 0, large 25000
#include <cstdio>

__global__ void reverse(int *values, int n) {
  extern __shared__ int room[];
  room[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = room[n - 1 - threadIdx.x];
}
__global__ void use_much(int *out, int n) {
  extern __shared__ int much[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) much[i] = 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += much[i];
    *out = sum;
  }
}

int main() {
  const int n = 64, many = 25000;
  int host[n], *values, large = 0;
  for (int i = 0; i < n; ++i) host[i] = i;
  cudaMalloc(&values, sizeof host);
  cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
  reverse<<<1, n, n * sizeof(int)>>>(values, n);
  cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost);
  cudaFuncSetAttribute(use_much, cudaFuncAttributeMaxDynamicSharedMemorySize, many * sizeof(int));
  use_much<<<1, 128, many * sizeof(int)>>>(values, many);
  cudaMemcpy(&large, values, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("reversed %d to %d, large %d\n", host[0], host[n - 1], large);
  cudaFree(values);
  return 0;
}
