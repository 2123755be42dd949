// Memory in the order of a stream, from the device's pool and from one of the program's own.
// output: 3 6
#include <cstdio>

__global__ void fill(int *values, int with) { values[threadIdx.x] = with; }

int main() {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMemPool_t pool;
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPoolCreate(&pool, &properties);
  int host[2] = {};
  for (int round = 0; round < 2; ++round) {
    int *values;
    if (round == 0) cudaMallocAsync(&values, 64 * sizeof(int), stream);
    if (round == 1) cudaMallocFromPoolAsync(&values, 64 * sizeof(int), pool, stream);
    fill<<<1, 64, 0, stream>>>(values, 3 * (round + 1));
    cudaMemcpyAsync(&host[round], values + 63, sizeof(int), cudaMemcpyDeviceToHost, stream);
    cudaFreeAsync(values, stream);
  }
  cudaStreamSynchronize(stream);
  std::printf("%d %d\n", host[0], host[1]);
  cudaMemPoolDestroy(pool);
  cudaStreamDestroy(stream);
  return 0;
}
