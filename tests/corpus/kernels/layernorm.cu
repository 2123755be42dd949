// layernorm.cu: rows shifted to mean 0, scaled to variance 1, then weighted; sums by shuffles across a block of 4
// warps.
__device__ float block_sum(float *parts, float value) {
  for (int delta = 16; delta > 0; delta /= 2) value += __shfl_xor_sync(0xffffffffu, value, delta);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  return parts[0] + parts[1] + parts[2] + parts[3];
}

__global__ void layernorm(const float *in, const float *weight, const float *bias, float *out, float epsilon,
                          int columns) {
  __shared__ float parts[4];
  int start = blockIdx.x * columns;
  float sum = 0.0f;
  for (int k = threadIdx.x; k < columns; k += blockDim.x) sum += in[start + k];
  float mean = block_sum(parts, sum) / columns;
  float squares = 0.0f;
  for (int k = threadIdx.x; k < columns; k += blockDim.x) {
    float shifted = in[start + k] - mean;
    squares += shifted * shifted;
  }
  float scale = 1.0f / sqrtf(block_sum(parts, squares) / columns + epsilon);
  for (int k = threadIdx.x; k < columns; k += blockDim.x) {
    out[start + k] = (in[start + k] - mean) * scale * weight[k] + bias[k];
  }
}
