// transpose_batch.cu: axes of a 3-D array permuted (batch, row, column) to (column, batch, row).
__global__ void transpose_batch(const double *in, double *out, int batches, int rows, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int batch = blockIdx.z;
  if (column < columns && row < rows) {
    out[(column * batches + batch) * rows + row] = in[(batch * rows + row) * columns + column];
  }
}
