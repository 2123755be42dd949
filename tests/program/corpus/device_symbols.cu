// Variables of the device: their addresses, their sizes, and copies out of them.
// output: counter 128, table 2 3 5 7, size 16, by address 11
#include <cstdio>

__device__ int counter = 0;
__device__ int table[4] = {2, 3, 5, 7};

__global__ void count() { atomicAdd(&counter, 1); }
__global__ void overwrite(int *first) { *first = 11; }

int main() {
  count<<<4, 32>>>();
  int counted = 0, copied[4], first = 0;
  size_t bytes = 0;
  void *address = nullptr;
  cudaMemcpyFromSymbol(&counted, counter, sizeof counted);
  cudaMemcpyFromSymbol(copied, table, sizeof copied);
  cudaGetSymbolSize(&bytes, table);
  cudaGetSymbolAddress(&address, table);
  overwrite<<<1, 1>>>(static_cast<int *>(address));
  cudaMemcpy(&first, address, sizeof first, cudaMemcpyDeviceToHost);
  std::printf("counter %d, table %d %d %d %d, size %zu, by address %d\n", counted, copied[0], copied[1], copied[2],
              copied[3], bytes, first);
  return counted == 128 ? 0 : 1;
}
