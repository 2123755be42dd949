// Kernels that a macro makes: names as they are, names put together, over lines, with their launch.
// output: 4 3.5 8, in a namespace 15
#include <cstdio>

#define ADD_ONE(name, T) \
  __global__ void name(T *value) { *value += T(1); }
ADD_ONE(add_int, int)
ADD_ONE(add_float, float)

#define WITH_LAUNCH(name, expression)                                  \
  __device__ int name##_value(int x) { return expression; /* of x */ } \
  __global__ void name##_kernel(int *value) {                          \
    if (threadIdx.x == 0) {                                            \
      *value = name##_value(*value);                                   \
    }                                                                  \
  }                                                                    \
  void name(int *value) {                                              \
    name##_kernel<<<1, 32>>>(value);                                   \
    cudaDeviceSynchronize();                                           \
  }
WITH_LAUNCH(twice, x + x)
namespace inner {
WITH_LAUNCH(less_one, x - 1)
}

int main() {
  int *i, host = 3;
  float *f, part = 2.5f;
  cudaMalloc(&i, sizeof host);
  cudaMalloc(&f, sizeof part);
  cudaMemcpy(i, &host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(f, &part, sizeof part, cudaMemcpyHostToDevice);
  add_int<<<1, 1>>>(i);
  add_float<<<1, 1>>>(f);
  cudaMemcpy(&host, i, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemcpy(&part, f, sizeof part, cudaMemcpyDeviceToHost);
  std::printf("%d %g", host, part);
  twice(i);
  cudaMemcpy(&host, i, sizeof host, cudaMemcpyDeviceToHost);
  std::printf(" %d", host);
  twice(i);
  inner::less_one(i);
  cudaMemcpy(&host, i, sizeof host, cudaMemcpyDeviceToHost);
  std::printf(", in a namespace %d\n", host);
  cudaFree(i);
  cudaFree(f);
  return 0;
}
