// The macro that every tutorial has, around calls and after launches.
// output: all calls succeeded
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                              \
  do {                                                                                           \
    const cudaError_t status = (call);                                                           \
    if (status != cudaSuccess) {                                                                 \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));       \
      std::exit(EXIT_FAILURE);                                                                   \
    }                                                                                            \
  } while (0)

__global__ void nothing() {}

int main() {
  void *memory;
  CHECK(cudaMalloc(&memory, 16));
  nothing<<<1, 1>>>();
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(memory));
  CHECK(cudaDeviceReset());
  std::printf("all calls succeeded\n");
  return 0;
}
