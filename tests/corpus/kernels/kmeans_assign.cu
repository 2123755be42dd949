// kmeans_assign.cu: each point to its nearest centre, and the centres' counts and coordinate sums, all in integers.
#define CENTRES 5
__global__ void kmeans_assign(const int2 *points, const int2 *centres, int *labels, int *sums, int n) {
  __shared__ int2 near[CENTRES];
  __shared__ int totals[CENTRES][3];
  if (threadIdx.x < CENTRES) {
    near[threadIdx.x] = centres[threadIdx.x];
    for (int k = 0; k < 3; ++k) totals[threadIdx.x][k] = 0;
  }
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int2 point = points[i];
    int best = 0;
    int least = 0x7fffffff;
    for (int k = 0; k < CENTRES; ++k) {
      int dx = point.x - near[k].x;
      int dy = point.y - near[k].y;
      int distance = dx * dx + dy * dy;
      if (distance < least) {
        least = distance;
        best = k;
      }
    }
    labels[i] = best;
    atomicAdd(&totals[best][0], 1);
    atomicAdd(&totals[best][1], point.x);
    atomicAdd(&totals[best][2], point.y);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < 3 * CENTRES; k += blockDim.x) atomicAdd(&sums[k], totals[k / 3][k % 3]);
}
