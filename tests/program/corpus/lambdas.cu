// A kernel that applies what it is given: a functor, and a lambda of the host and the device with a capture.
// output: 0 2 4 6, 5 6 7 8
#include <cstdio>

template <typename F>
__global__ void apply(int *values, int n, F f) {
  const int i = threadIdx.x;
  if (i < n) values[i] = f(values[i]);
}
struct Twice {
  __host__ __device__ int operator()(int x) const { return 2 * x; }
};

int main() {
  int *values, host[4] = {0, 1, 2, 3}, doubled[4], moved[4];
  cudaMalloc(&values, sizeof host);
  cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
  apply<<<1, 4>>>(values, 4, Twice{});
  cudaMemcpy(doubled, values, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
  const int by = 5;
  apply<<<1, 4>>>(values, 4, [=] __device__(int x) { return x + by; });
  cudaMemcpy(moved, values, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%d %d %d %d, %d %d %d %d\n", doubled[0], doubled[1], doubled[2], doubled[3], moved[0], moved[1],
              moved[2], moved[3]);
  cudaFree(values);
  return 0;
}
