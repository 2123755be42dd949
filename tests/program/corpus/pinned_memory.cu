// Pinned memory, mapped memory that a kernel reads in place, and memory of the program's own that is registered.
// output: copied 10 20 30 40, mapped 11 21 31 41, registered 9
#include <cstdio>
#include <cstdlib>

__global__ void increment(int *values) { values[threadIdx.x] += 1; }

int main() {
  int *pinned, *device, *mapped, *seen;
  cudaMallocHost(&pinned, 4 * sizeof(int));
  cudaMalloc(&device, 4 * sizeof(int));
  cudaHostAlloc(&mapped, 4 * sizeof(int), cudaHostAllocMapped);
  for (int i = 0; i < 4; ++i) pinned[i] = mapped[i] = 10 * (i + 1);
  cudaMemcpyAsync(device, pinned, 4 * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemset(pinned, 0, 4 * sizeof(int));
  cudaMemcpy(pinned, device, 4 * sizeof(int), cudaMemcpyDeviceToHost);
  cudaHostGetDevicePointer(&seen, mapped, 0);
  increment<<<1, 4>>>(seen);
  cudaDeviceSynchronize();

  int *own = static_cast<int *>(std::malloc(4096));
  own[0] = 8;
  cudaHostRegister(own, 4096, cudaHostRegisterMapped);
  cudaHostGetDevicePointer(&seen, own, 0);
  increment<<<1, 1>>>(seen);
  cudaDeviceSynchronize();
  cudaHostUnregister(own);

  std::printf("copied %d %d %d %d, mapped %d %d %d %d, registered %d\n", pinned[0], pinned[1], pinned[2], pinned[3],
              mapped[0], mapped[1], mapped[2], mapped[3], own[0]);
  std::free(own);
  cudaFreeHost(pinned);
  cudaFreeHost(mapped);
  cudaFree(device);
  return 0;
}
