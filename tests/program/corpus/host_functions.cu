// Functions of the host in the order of a stream: cudaLaunchHostFunc and cudaStreamAddCallback.
// output: first 7
// output: then 14, no error
#include <cstdio>

__global__ void set(int *value, int to) { *value = to; }
static void first(void *data) { std::printf("first %d\n", *static_cast<int *>(data)); }
static void then(cudaStream_t, cudaError_t status, void *data) {
  std::printf("then %d, %s\n", *static_cast<int *>(data), status == cudaSuccess ? "no error" : "an error");
}

int main() {
  int *value, *host;
  cudaMalloc(&value, sizeof(int));
  cudaMallocHost(&host, sizeof(int));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  set<<<1, 1, 0, stream>>>(value, 7);
  cudaMemcpyAsync(host, value, sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaLaunchHostFunc(stream, first, host);
  set<<<1, 1, 0, stream>>>(value, 14);
  cudaMemcpyAsync(host, value, sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaStreamAddCallback(stream, then, host, 0);
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  cudaFree(value);
  cudaFreeHost(host);
  return 0;
}
