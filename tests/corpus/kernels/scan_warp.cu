// scan_warp.cu: inclusive sums of each block's elements by shuffles within warps and over the warps' totals.
__device__ int warp_scan(int value, int lane) {
  for (int distance = 1; distance < 32; distance *= 2) {
    int other = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += other;
  }
  return value;
}

__global__ void scan_warp(const int *in, int *out, int n) {
  __shared__ int totals[4];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x % 32;
  int warp = threadIdx.x / 32;
  int sum = warp_scan(i < n ? in[i] : 0, lane);
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    int total = warp_scan(lane < 4 ? totals[lane] : 0, lane);
    if (lane < 4) totals[lane] = total;
  }
  __syncthreads();
  if (warp > 0) sum += totals[warp - 1];
  if (i < n) out[i] = sum;
}
