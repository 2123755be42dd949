// nearest_point.cu: every thread looks for the nearest of a block's points, tile by tile.
#include <cuda/std/limits>
#include <cuda/std/utility>

__global__ void nearest_point(const float2 *queries, const float2 *points, int *nearest, int points_n, int n) {
  __shared__ float2 tile[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float2 query = i < n ? queries[i] : make_float2(0.0f, 0.0f);
  cuda::std::pair<float, int> best(cuda::std::numeric_limits<float>::max(), -1);
  for (int first = 0; first < points_n; first += 32) {
    if (first + threadIdx.x < points_n) tile[threadIdx.x] = points[first + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < 32 && first + k < points_n; ++k) {
      float x = tile[k].x - query.x, y = tile[k].y - query.y;
      float distance = x * x + y * y;
      if (distance < best.first) best = cuda::std::make_pair(distance, first + k);
    }
    __syncthreads();
  }
  if (i < n) nearest[i] = best.second;
}
