// reduce_shuffle.cu: the sum of an array by warp shuffles, then one atomic addition a block.
__device__ int warp_sum(int value) {
  for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffffu, value, delta);
  return value;
}

__global__ void reduce_shuffle(const int *in, int *sum, int n) {
  __shared__ int parts[4];
  int value = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += in[i];
  value = warp_sum(value);
  int lane = threadIdx.x % 32;
  int warp = threadIdx.x / 32;
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = warp_sum(lane < 4 ? parts[lane] : 0);
    if (lane == 0) atomicAdd(sum, value);
  }
}
