// stencil_1d.cu: sums over a window of radius 3, the block's elements and their halo staged in shared memory.
#define RADIUS 3
#define BLOCK 64
__global__ void stencil_1d(const int *in, int *out, int n) {
  __shared__ int tile[BLOCK + 2 * RADIUS];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  int at = threadIdx.x + RADIUS;
  tile[at] = i < n ? in[i] : 0;
  if (threadIdx.x < RADIUS) {
    int before = i - RADIUS;
    int after = i + BLOCK;
    tile[at - RADIUS] = before >= 0 ? in[before] : 0;
    tile[at + BLOCK] = after < n ? in[after] : 0;
  }
  __syncthreads();
  if (i < n) {
    int sum = 0;
    for (int k = -RADIUS; k <= RADIUS; ++k) sum += tile[at + k];
    out[i] = sum;
  }
}
