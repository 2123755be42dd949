// One pointer for host and device, and a variable that both see.
// output: sum 4950, calls 3
#include <cstdio>

__managed__ int calls = 0;

__global__ void accumulate(const int *values, int n, int *sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, values[i]);
  if (i == 0) ++calls;
}

int main() {
  int *values, *sum;
  cudaMallocManaged(&values, 100 * sizeof(int));
  cudaMallocManaged(&sum, sizeof(int));
  for (int i = 0; i < 100; ++i) values[i] = i;
  calls = 1;
  for (int round = 0; round < 2; ++round) {
    *sum = 0;
    accumulate<<<4, 32>>>(values, 100, sum);
    cudaDeviceSynchronize();
  }
  std::printf("sum %d, calls %d\n", *sum, calls);
  cudaFree(values);
  cudaFree(sum);
  return *&calls == 3 ? 0 : 1;
}
