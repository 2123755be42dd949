// CUB's calls for the whole device, in two phases each: a sum, a scan, a selection, a histogram.
// output: sum 43, largest 9
// output: before 0 8 14 21 26 29 29 38
// output: small 3 0, by fives 2 6
#include <cstdio>
#include <cub/cub.cuh>

struct LessThan {
  int limit;
  __host__ __device__ bool operator()(const int &x) const { return x < limit; }
};

int main() {
  const int n = 8;
  int host[n] = {8, 6, 7, 5, 3, 0, 9, 5}, *in, *out, *count;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof host);
  cudaMalloc(&count, sizeof(int));
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  void *storage = nullptr;
  size_t bytes = 0;
  cub::DeviceScan::ExclusiveSum(storage, bytes, in, out, n);
  cudaMalloc(&storage, bytes);
  int sum, largest, selected;
  cub::DeviceReduce::Sum(storage, bytes, in, out, n);
  cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost);
  cub::DeviceReduce::Max(storage, bytes, in, out, n);
  cudaMemcpy(&largest, out, sizeof largest, cudaMemcpyDeviceToHost);
  std::printf("sum %d, largest %d\nbefore", sum, largest);
  cub::DeviceScan::ExclusiveSum(storage, bytes, in, out, n);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int value : host) std::printf(" %d", value);
  cub::DeviceSelect::If(storage, bytes, in, out, count, n, LessThan{4});
  cudaMemcpy(&selected, count, sizeof selected, cudaMemcpyDeviceToHost);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("\nsmall");
  for (int i = 0; i < selected; ++i) std::printf(" %d", host[i]);
  cub::DeviceHistogram::HistogramEven(storage, bytes, in, out, 3, 0, 10, n);
  cudaMemcpy(host, out, 2 * sizeof(int), cudaMemcpyDeviceToHost);
  std::printf(", by fives %d %d\n", host[0], host[1]);
  cudaFree(in);
  cudaFree(out);
  cudaFree(count);
  cudaFree(storage);
  return 0;
}
