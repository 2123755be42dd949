// Kernels that are templates: of a type, of a number, and launched from a template of the host.
// output: int 10, float 2.50, squared 16
#include <cstdio>

template <typename T>
__global__ void sum(const T *values, int n, T *out) {
  T total = T(0);
  for (int i = 0; i < n; ++i) total += values[i];
  *out = total;
}
template <int Power>
__global__ void power(int *value) {
  int result = 1;
  for (int i = 0; i < Power; ++i) result *= *value;
  *value = result;
}

template <typename T>
T sum_on_device(const T *host, int n) {
  T *values, *out, result;
  cudaMalloc(&values, n * sizeof(T));
  cudaMalloc(&out, sizeof(T));
  cudaMemcpy(values, host, n * sizeof(T), cudaMemcpyHostToDevice);
  sum<T><<<1, 1>>>(values, n, out);
  cudaMemcpy(&result, out, sizeof(T), cudaMemcpyDeviceToHost);
  cudaFree(values);
  cudaFree(out);
  return result;
}

int main() {
  const int whole[] = {1, 2, 3, 4};
  const float parts[] = {0.5f, 0.75f, 1.25f};
  int *value, four = 4;
  cudaMalloc(&value, sizeof(int));
  cudaMemcpy(value, &four, sizeof(int), cudaMemcpyHostToDevice);
  power<2><<<1, 1>>>(value);
  cudaMemcpy(&four, value, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("int %d, float %.2f, squared %d\n", sum_on_device(whole, 4), sum_on_device(parts, 3), four);
  cudaFree(value);
  return 0;
}
