// matmul_tile.cu: matrix product by shared tiles, sizes that are no multiples of the tile.
#define TILE 8
__global__ void matmul_tile(const float *a, const float *b, float *c, int rows, int inner, int columns) {
  __shared__ float left[TILE][TILE];
  __shared__ float right[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int first = 0; first < inner; first += TILE) {
    int k = first + threadIdx.x;
    left[threadIdx.y][threadIdx.x] = row < rows && k < inner ? a[row * inner + k] : 0.0f;
    k = first + threadIdx.y;
    right[threadIdx.y][threadIdx.x] = k < inner && column < columns ? b[k * columns + column] : 0.0f;
    __syncthreads();
    for (int j = 0; j < TILE; ++j) sum += left[threadIdx.y][j] * right[j][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) c[row * columns + column] = sum;
}
