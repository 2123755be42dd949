// rmsnorm.cu: rows divided by their root mean square, one warp a row, the row kept in registers.
#define PER_LANE 4
__global__ void rmsnorm(const float *in, const float *weight, float *out, float epsilon, int rows, int columns) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float values[PER_LANE];
  float squares = 0.0f;
  for (int k = 0; k < PER_LANE; ++k) {
    int column = threadIdx.x + 32 * k;
    values[k] = column < columns ? in[row * columns + column] : 0.0f;
    squares += values[k] * values[k];
  }
  for (int delta = 16; delta > 0; delta /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, delta);
  float scale = rsqrtf(squares / columns + epsilon);
  for (int k = 0; k < PER_LANE; ++k) {
    int column = threadIdx.x + 32 * k;
    if (column < columns) out[row * columns + column] = values[k] * scale * weight[column];
  }
}
