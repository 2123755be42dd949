// Thrust on memory of cudaMalloc(): a policy, a stream, device_ptr, a lambda of the device, an error that is caught.
// output: sum 30, largest 16, products 30
// output: sorted 16 9 4 1 0
// output: too much memory: caught
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/for_each.h>
#include <thrust/inner_product.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

#include <cstdio>

int main() {
  int *values, host[5];
  cudaMalloc(&values, sizeof host);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  const thrust::device_ptr<int> first(values);
  for (int i = 0; i < 5; ++i) first[i] = i;
  const int n = 5;
  thrust::for_each(thrust::cuda::par.on(stream), values, values + n, [=] __device__(int &x) { x = x * x; });
  const int sum = thrust::reduce(thrust::device, values, values + n);
  const int largest = *thrust::max_element(first, first + n);
  const thrust::device_vector<int> ramp = {0, 1, 2, 3, 1};
  const int products = thrust::inner_product(ramp.begin(), ramp.end(), first, -22);
  std::printf("sum %d, largest %d, products %d\n", sum, largest, products);
  thrust::sort(thrust::device, values, values + n, thrust::greater<int>());
  cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("sorted %d %d %d %d %d\n", host[0], host[1], host[2], host[3], host[4]);
  try {
    thrust::device_vector<double> all(size_t(1) << 42);
  } catch (const std::bad_alloc &) {
    std::printf("too much memory: caught\n");
  }
  cudaStreamDestroy(stream);
  cudaFree(values);
  return 0;
}
