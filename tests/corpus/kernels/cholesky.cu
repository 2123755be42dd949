// cholesky.cu: Cholesky factors of small symmetric matrices, one warp a matrix, one lane a row.
#define SIZE 11
__global__ void cholesky(const double *matrices, double *factors) {
  __shared__ double a[SIZE][SIZE];
  int row = threadIdx.x;
  int start = blockIdx.x * SIZE * SIZE;
  if (row < SIZE) {
    for (int k = 0; k < SIZE; ++k) a[row][k] = matrices[start + row * SIZE + k];
  }
  for (int column = 0; column < SIZE; ++column) {
    if (row == column) {
      for (int k = 0; k < column; ++k) a[row][row] -= a[row][k] * a[row][k];
      a[row][row] = sqrt(a[row][row]);
    }
    __syncwarp();
    if (row > column && row < SIZE) {
      for (int k = 0; k < column; ++k) a[row][column] -= a[row][k] * a[column][k];
      a[row][column] /= a[column][column];
    }
  }
  if (row < SIZE) {
    for (int k = 0; k < SIZE; ++k) factors[start + row * SIZE + k] = k <= row ? a[row][k] : 0.0;
  }
}
