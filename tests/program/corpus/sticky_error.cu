// A kernel that goes where no memory is: told by the next call that waits, and by all calls after it.
// output: launch: no error
// output: wait: an illegal memory access was encountered
// output: allocation: an illegal memory access was encountered
// finding: fault
#include <cstdio>

__global__ void write(int *where) { *where = 1; }

int main() {
  int *none = nullptr, *more = nullptr;
  write<<<1, 1>>>(none);
  std::printf("launch: %s\n", cudaGetErrorString(cudaGetLastError()));
  std::printf("wait: %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  std::printf("allocation: %s\n", cudaGetErrorString(cudaMalloc(&more, 4)));
  return 0;
}
