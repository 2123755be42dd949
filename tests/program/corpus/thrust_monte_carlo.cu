// Thrust: pi from random points, a generator for each thread; and a program's own kernel on a vector's memory.
// output: pi within a hundredth: yes, twice the same: yes
// output: squares 1 4 9
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/random.h>
#include <thrust/transform_reduce.h>

#include <cmath>
#include <cstdio>

struct Inside {
  __host__ __device__ float operator()(unsigned seed) const {
    thrust::default_random_engine engine(1 + 8191 * seed);
    thrust::uniform_real_distribution<float> place(0, 1);
    int inside = 0;
    for (int i = 0; i < 500; ++i) {
      const float x = place(engine), y = place(engine);
      inside += x * x + y * y <= 1.0f;
    }
    return 4.0f * inside / 500;
  }
};
__global__ void square(int *values, int n) {
  const int i = threadIdx.x;
  if (i < n) values[i] *= values[i];
}

float pi() {
  const thrust::counting_iterator<unsigned> first(0);
  return thrust::transform_reduce(first, first + 400, Inside(), 0.0f, thrust::plus<float>()) / 400;
}

int main() {
  const float once = pi();
  std::printf("pi within a hundredth: %s, twice the same: %s\n", std::fabs(once - 3.14159265f) < 0.01f ? "yes" : "no",
              once == pi() ? "yes" : "no");
  thrust::device_vector<int> values = {1, 2, 3};
  square<<<1, 32>>>(thrust::raw_pointer_cast(values.data()), 3);
  std::printf("squares %d %d %d\n", (int)values[0], (int)values[1], (int)values[2]);
  return 0;
}
