// gemv.cu: matrix times vector, the vector staged in shared memory, one warp a row.
#define MAX_COLUMNS 256
__global__ void gemv(const float *matrix, const float *x, float *out, int rows, int columns) {
  __shared__ float vector[MAX_COLUMNS];
  for (int k = threadIdx.x; k < columns; k += blockDim.x) vector[k] = x[k];
  __syncthreads();
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int k = lane; k < columns; k += 32) sum += matrix[row * columns + k] * vector[k];
  for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta);
  if (lane == 0) out[row] = sum;
}
