// reduce_volatile.cu: a warp's sum over volatile shared memory, warps synchronised between the steps.
__global__ void reduce_volatile(const int *in, int *out, int n) {
  __shared__ volatile int sums[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  int lane = threadIdx.x % 32;
  sums[threadIdx.x] = i < n ? in[i] : 0;
  __syncwarp();
  for (int half = 16; half > 0; half /= 2) {
    if (lane < half) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + half];
    __syncwarp();
  }
  if (lane == 0) out[i / 32] = sums[threadIdx.x];
}
