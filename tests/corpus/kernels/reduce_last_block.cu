// reduce_last_block.cu: the sum of an array in one launch: the block that finishes last adds up what all blocks left.
#define BLOCK 64
__device__ unsigned finished = 0;

__global__ void reduce_last_block(const float *in, float *parts, float *sum, int n) {
  __shared__ float sums[BLOCK];
  float value = 0.0f;
  for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) value += in[i];
  sums[threadIdx.x] = value;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sums[0];
    __threadfence();
    unsigned ticket = atomicInc(&finished, gridDim.x - 1);
    if (ticket == gridDim.x - 1) {
      __threadfence();
      float total = 0.0f;
      for (int k = 0; k < gridDim.x; ++k) total += parts[k];
      *sum = total;
    }
  }
}
