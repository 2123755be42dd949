// spmv_csr.cu: sparse matrix times vector, compressed rows, 8 threads a row.
__global__ void spmv_csr(const int *starts, const int *columns, const float *values, const float *x, float *out,
                         int rows) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x;
  int row = thread / 8;
  int lane = thread % 8;
  float sum = 0.0f;
  if (row < rows) {
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 8) sum += values[k] * __ldg(&x[columns[k]]);
  }
  for (int delta = 4; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta, 8);
  if (row < rows && lane == 0) out[row] = sum;
}
