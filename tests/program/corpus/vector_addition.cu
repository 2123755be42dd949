// The first program of every course: copies in, a launch, a copy out, a check.
// output: 1000 sums are right
#include <cstdio>
#include <vector>

__global__ void add(const float *a, const float *b, float *c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  const int n = 1000;
  const size_t bytes = n * sizeof(float);
  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) {
    a[i] = float(i);
    b[i] = 2.0f * i;
  }
  float *device_a, *device_b, *device_c;
  cudaMalloc(&device_a, bytes);
  cudaMalloc(&device_b, bytes);
  cudaMalloc(&device_c, bytes);
  cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice);
  add<<<(n + 255) / 256, 256>>>(device_a, device_b, device_c, n);
  cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost);
  int right = 0;
  for (int i = 0; i < n; ++i) right += c[i] == 3.0f * i;
  std::printf("%d sums are right\n", right);
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_c);
  return right == n ? 0 : 1;
}
