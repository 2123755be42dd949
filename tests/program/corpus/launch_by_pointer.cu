// A kernel as a value: in a table of pointers, by cudaLaunchKernel and by cudaLaunchKernelEx.
// output: 6 11 12
#include <cstdio>

__global__ void add(int *value, int by) { *value += by; }
__global__ void multiply(int *value, int by) { *value *= by; }
using Kernel = void (*)(int *, int);

int main() {
  const Kernel kernels[] = {add, multiply};
  int *value, results[3], start = 3, by = 2;
  cudaMalloc(&value, sizeof(int));
  cudaMemcpy(value, &start, sizeof(int), cudaMemcpyHostToDevice);
  const Kernel chosen = kernels[1];
  chosen<<<1, 1>>>(value, 2);
  cudaMemcpy(&results[0], value, sizeof(int), cudaMemcpyDeviceToHost);
  by = 5;
  void *arguments[] = {&value, &by};
  cudaLaunchKernel(reinterpret_cast<const void *>(kernels[0]), dim3(1), dim3(1), arguments, 0, nullptr);
  cudaMemcpy(&results[1], value, sizeof(int), cudaMemcpyDeviceToHost);
  cudaLaunchConfig_t config = {};
  config.gridDim = config.blockDim = dim3(1);
  cudaLaunchKernelEx(&config, add, value, 1);
  cudaMemcpy(&results[2], value, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("%d %d %d\n", results[0], results[1], results[2]);
  cudaFree(value);
  return 0;
}
