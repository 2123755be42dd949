// Thrust: vectors of both sides, a functor of both sides, placeholders, and values that are read one by one.
// output: 3 5 7 9 11
// output: sum 35, with placeholders 75
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/transform.h>

#include <cstdio>

struct Saxpy {
  const float a;
  Saxpy(float by) : a(by) {}
  __host__ __device__ float operator()(const float &x, const float &y) const { return a * x + y; }
};

int main() {
  using namespace thrust::placeholders;
  thrust::host_vector<float> start(5, 1.0f);
  thrust::device_vector<float> x(5), y = start;
  thrust::sequence(x.begin(), x.end(), 1.0f);
  thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), Saxpy(2.0f));
  for (size_t i = 0; i < y.size(); ++i) std::printf(i == 0 ? "%g" : " %g", (float)y[i]);
  const float sum = thrust::reduce(y.begin(), y.end(), 0.0f, thrust::plus<float>());
  thrust::transform(y.begin(), y.end(), x.begin(), x.begin(), 2 * _1 + _2 - 2);
  std::printf("\nsum %g, with placeholders %g\n", sum, thrust::reduce(x.begin(), x.end()));
  return 0;
}
