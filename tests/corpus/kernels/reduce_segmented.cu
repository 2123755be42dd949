// reduce_segmented.cu: the sum of every segment of an array, one warp a segment.
__global__ void reduce_segmented(const int *in, const int *offsets, long long *sums, int segments) {
  int segment = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (segment >= segments) return;
  long long sum = 0;
  for (int k = offsets[segment] + lane; k < offsets[segment + 1]; k += 32) sum += in[k];
  for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, delta);
  if (lane == 0) sums[segment] = sum;
}
