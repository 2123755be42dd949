// scan_hillis_steele.cu: inclusive sums of each block's elements by doubling distances.
__global__ void scan_hillis_steele(const int *in, int *out, int n) {
  extern __shared__ int sums[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  sums[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int distance = 1; distance < blockDim.x; distance *= 2) {
    int other = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
    __syncthreads();
    sums[threadIdx.x] += other;
    __syncthreads();
  }
  if (i < n) out[i] = sums[threadIdx.x];
}
