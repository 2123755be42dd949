// CUB: floats sorted with their numbers between two buffers, keys by some of their bits, and a block's own sums.
// output: -7 -2 -0 1 7 in order 3 1 4 0 2
// output: by two bits 7 3 6 5 9 8 0
// output: blocks 28 92
#include <cstdio>
#include <cub/cub.cuh>

template <int Threads>
__global__ void sums(int *out) {
  typedef cub::BlockReduce<int, Threads> Reduce;
  __shared__ typename Reduce::TempStorage room;
  const int sum = Reduce(room).Sum(blockIdx.x * Threads + threadIdx.x);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

int main() {
  const float values[5] = {1, -2, 7, -7, -0.0f};
  const int numbers[7] = {8, 6, 7, 5, 3, 0, 9};
  float *keys, sorted[5];
  int *places, *in, *out, order[5] = {0, 1, 2, 3, 4}, by_bits[7], blocks[2];
  cudaMalloc(&keys, 2 * sizeof values);
  cudaMalloc(&places, 2 * sizeof order);
  cudaMalloc(&in, sizeof numbers);
  cudaMalloc(&out, sizeof numbers);
  cudaMemcpy(keys, values, sizeof values, cudaMemcpyHostToDevice);
  cudaMemcpy(places, order, sizeof order, cudaMemcpyHostToDevice);
  cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  cub::DoubleBuffer<float> both(keys, keys + 5);
  cub::DoubleBuffer<int> with(places, places + 5);
  void *storage = nullptr;
  size_t bytes = 0;
  cub::DeviceRadixSort::SortPairs(storage, bytes, both, with, 5);
  cudaMalloc(&storage, bytes);
  cub::DeviceRadixSort::SortPairs(storage, bytes, both, with, 5);
  cudaMemcpy(sorted, both.Current(), sizeof sorted, cudaMemcpyDeviceToHost);
  cudaMemcpy(order, with.Current(), sizeof order, cudaMemcpyDeviceToHost);
  for (float value : sorted) std::printf("%g ", value);
  std::printf("in order");
  for (int place : order) std::printf(" %d", place);
  cub::DeviceRadixSort::SortKeysDescending(storage, bytes, in, out, 7, 0, 2);
  cudaMemcpy(by_bits, out, sizeof by_bits, cudaMemcpyDeviceToHost);
  std::printf("\nby two bits");
  for (int value : by_bits) std::printf(" %d", value);
  sums<8><<<2, 8>>>(out);
  cudaMemcpy(blocks, out, sizeof blocks, cudaMemcpyDeviceToHost);
  std::printf("\nblocks %d %d\n", blocks[0], blocks[1]);
  for (void *one : {(void *)keys, (void *)places, (void *)in, (void *)out, storage}) cudaFree(one);
  return 0;
}
