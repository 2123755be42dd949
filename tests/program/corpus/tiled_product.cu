// The product of two matrices by tiles in shared memory, of a size that is no multiple of the tile's.
// output: largest difference 0
#include <cmath>
#include <cstdio>
#include <vector>

constexpr int kTile = 16;

__global__ void product(const float *a, const float *b, float *c, int n) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; k += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0.0f;
    tile_b[threadIdx.y][threadIdx.x] = column < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

int main() {
  const int n = 50;
  const size_t bytes = n * n * sizeof(float);
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[i] = float(i % 7 - 3);
    b[i] = float(i % 5 - 2);
  }
  float *device_a, *device_b, *device_c;
  cudaMalloc(&device_a, bytes);
  cudaMalloc(&device_b, bytes);
  cudaMalloc(&device_c, bytes);
  cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice);
  const dim3 block(kTile, kTile), grid((n + kTile - 1) / kTile, (n + kTile - 1) / kTile);
  product<<<grid, block>>>(device_a, device_b, device_c, n);
  cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost);
  float largest = 0.0f;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      float expected = 0.0f;
      for (int k = 0; k < n; ++k) expected += a[row * n + k] * b[k * n + column];
      largest = std::fmax(largest, std::fabs(expected - c[row * n + column]));
    }
  std::printf("largest difference %g\n", largest);
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_c);
  return largest == 0.0f ? 0 : 1;
}
