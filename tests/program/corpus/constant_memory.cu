// A polynomial whose coefficients are constants: cudaMemcpyToSymbol with an offset.
// output: 1.00 3.00 9.00 19.00
#include <cstdio>

__constant__ float coefficients[3];

__global__ void polynomial(const float *x, float *y, int n) {
  const int i = threadIdx.x;
  if (i < n) y[i] = coefficients[0] + x[i] * (coefficients[1] + x[i] * coefficients[2]);
}

int main() {
  const float low[] = {1.0f, 0.0f}, high = 2.0f;
  cudaMemcpyToSymbol(coefficients, low, sizeof low);
  cudaMemcpyToSymbol(coefficients, &high, sizeof high, 2 * sizeof(float));
  const float x[] = {0, 1, 2, 3};
  float y[4], *device_x, *device_y;
  cudaMalloc(&device_x, sizeof x);
  cudaMalloc(&device_y, sizeof y);
  cudaMemcpy(device_x, x, sizeof x, cudaMemcpyHostToDevice);
  polynomial<<<1, 32>>>(device_x, device_y, 4);
  cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost);
  std::printf("%.2f %.2f %.2f %.2f\n", y[0], y[1], y[2], y[3]);
  cudaFree(device_x);
  cudaFree(device_y);
  return 0;
}
