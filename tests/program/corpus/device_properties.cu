// What a program asks about its device.
// output: at least one device: yes
// output: a warp has 32 threads, a block at most 1024
// output: attribute and property agree: yes
// output: no device 99: invalid device ordinal
#include <cstdio>

int main() {
  int count = 0, current = -1, multiprocessors = 0;
  cudaGetDeviceCount(&count);
  cudaGetDevice(&current);
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, current);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, current);
  std::printf("at least one device: %s\n", count >= 1 && properties.name[0] != 0 ? "yes" : "no");
  std::printf("a warp has %d threads, a block at most %d\n", properties.warpSize, properties.maxThreadsPerBlock);
  std::printf("attribute and property agree: %s\n",
              multiprocessors == properties.multiProcessorCount && multiprocessors > 0 ? "yes" : "no");
  std::printf("no device 99: %s\n", cudaGetErrorString(cudaSetDevice(99)));
  size_t left = 0, total = 0;
  cudaMemGetInfo(&left, &total);
  return left <= total && total > 0 && cudaGetLastError() == cudaErrorInvalidDevice ? 0 : 1;
}
