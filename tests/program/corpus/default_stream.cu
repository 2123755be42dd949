// The default stream waits for the others and they for it, and the thread's own does not have to.
// output: legacy 3 5, own 7
#include <cstdio>

__global__ void set(int *value, int to) { *value = to; }
__global__ void copy(int *to, const int *from) { *to = *from; }

int main() {
  int *values, host[3];
  cudaMalloc(&values, 3 * sizeof(int));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  set<<<1, 1, 0, stream>>>(values, 3);
  copy<<<1, 1>>>(values + 1, values);  // after the stream's
  set<<<1, 1>>>(values + 2, 5);
  copy<<<1, 1, 0, stream>>>(values, values + 2);  // after the default stream's
  cudaStreamSynchronize(stream);
  cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost);
  const int first = host[1], second = host[0];
  set<<<1, 1, 0, cudaStreamPerThread>>>(values, 7);
  cudaMemcpyAsync(host, values, sizeof(int), cudaMemcpyDeviceToHost, cudaStreamPerThread);
  cudaStreamSynchronize(cudaStreamPerThread);
  std::printf("legacy %d %d, own %d\n", first, second, host[0]);
  cudaStreamDestroy(stream);
  cudaFree(values);
  return first == 3 && second == 5 ? 0 : 1;
}
