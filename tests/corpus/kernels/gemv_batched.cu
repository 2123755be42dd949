// gemv_batched.cu: a batch of small matrices times a batch of vectors, one batch for each y of the grid.
__global__ void gemv_batched(const double *matrices, const double *vectors, double *out, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int batch = blockIdx.y;
  if (row < rows) {
    double sum = 0.0;
    for (int k = 0; k < columns; ++k)
      sum += matrices[(batch * rows + row) * columns + k] * vectors[batch * columns + k];
    out[batch * rows + row] = sum;
  }
}
