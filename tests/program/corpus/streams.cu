// Work of four streams in pieces, and an event that orders two of them.
// output: 4096 of 4096 are right, ordered 42
#include <cstdio>
#include <vector>

__global__ void scale(float *values, int n, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= factor;
}
__global__ void set(int *value, int to) { *value = to; }
__global__ void twice(int *value) { *value *= 2; }

int main() {
  const int n = 4096, pieces = 4, piece = n / pieces;
  float *host, *device;
  cudaMallocHost(&host, n * sizeof(float));
  cudaMalloc(&device, n * sizeof(float));
  for (int i = 0; i < n; ++i) host[i] = float(i);
  std::vector<cudaStream_t> streams(pieces);
  for (auto &stream : streams) cudaStreamCreate(&stream);
  for (int k = 0; k < pieces; ++k) {
    float *from = host + k * piece, *to = device + k * piece;
    cudaMemcpyAsync(to, from, piece * sizeof(float), cudaMemcpyHostToDevice, streams[k]);
    scale<<<piece / 128, 128, 0, streams[k]>>>(to, piece, float(k + 1));
    cudaMemcpyAsync(from, to, piece * sizeof(float), cudaMemcpyDeviceToHost, streams[k]);
  }
  cudaDeviceSynchronize();
  int right = 0, ordered = 0, *value;
  for (int i = 0; i < n; ++i) right += host[i] == float(i) * (i / piece + 1);

  cudaEvent_t is_set;
  cudaEventCreateWithFlags(&is_set, cudaEventDisableTiming);
  cudaMalloc(&value, sizeof(int));
  set<<<1, 1, 0, streams[0]>>>(value, 21);
  cudaEventRecord(is_set, streams[0]);
  cudaStreamWaitEvent(streams[1], is_set, 0);
  twice<<<1, 1, 0, streams[1]>>>(value);
  cudaMemcpyAsync(&ordered, value, sizeof(int), cudaMemcpyDeviceToHost, streams[1]);
  cudaStreamSynchronize(streams[1]);
  std::printf("%d of %d are right, ordered %d\n", right, n, ordered);
  for (auto &stream : streams) cudaStreamDestroy(stream);
  cudaEventDestroy(is_set);
  cudaFree(value);
  cudaFree(device);
  cudaFreeHost(host);
  return right == n && ordered == 42 ? 0 : 1;
}
