// matmul_register.cu: matrix product, 2 x 2 results a thread kept in registers, tiles of 16 x 16.
#define TILE 16
#define HALF 8
__global__ void matmul_register(const float *a, const float *b, float *c, int n) {
  __shared__ float left[TILE][TILE];
  __shared__ float right[TILE][TILE];
  float sums[2][2] = {};
  int top = blockIdx.y * TILE;
  int start = blockIdx.x * TILE;
  for (int first = 0; first < n; first += TILE) {
    for (int p = 0; p < 2; ++p) {
      for (int q = 0; q < 2; ++q) {
        int y = threadIdx.y + p * HALF;
        int x = threadIdx.x + q * HALF;
        left[y][x] = top + y < n && first + x < n ? a[(top + y) * n + first + x] : 0.0f;
        right[y][x] = first + y < n && start + x < n ? b[(first + y) * n + start + x] : 0.0f;
      }
    }
    __syncthreads();
    for (int k = 0; k < TILE; ++k) {
      for (int p = 0; p < 2; ++p) {
        for (int q = 0; q < 2; ++q) sums[p][q] += left[threadIdx.y + p * HALF][k] * right[k][threadIdx.x + q * HALF];
      }
    }
    __syncthreads();
  }
  for (int p = 0; p < 2; ++p) {
    for (int q = 0; q < 2; ++q) {
      int row = top + threadIdx.y + p * HALF;
      int column = start + threadIdx.x + q * HALF;
      if (row < n && column < n) c[row * n + column] = sums[p][q];
    }
  }
}
