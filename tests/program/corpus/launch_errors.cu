// Errors of calls, of launches, and that cudaGetLastError() takes them away.
// output: launch: invalid configuration argument
// output: again: no error
// output: copy: invalid argument
// output: allocation: out of memory
// output: still works: 5
#include <cstdio>

__global__ void set(int *value) { *value = 5; }

int main() {
  int *value, host = 0;
  cudaMalloc(&value, sizeof(int));
  set<<<1, 2000>>>(value);
  std::printf("launch: %s\n", cudaGetErrorString(cudaGetLastError()));
  std::printf("again: %s\n", cudaGetErrorString(cudaGetLastError()));
  std::printf("copy: %s\n", cudaGetErrorString(cudaMemcpy(nullptr, value, sizeof(int), cudaMemcpyDeviceToHost)));
  void *huge = nullptr;
  std::printf("allocation: %s\n", cudaGetErrorString(cudaMalloc(&huge, size_t(1) << 46)));
  cudaGetLastError();
  set<<<1, 1>>>(value);
  cudaMemcpy(&host, value, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("still works: %d\n", host);
  cudaFree(value);
  return 0;
}
