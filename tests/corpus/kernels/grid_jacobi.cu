// grid_jacobi.cu: several sweeps of Jacobi's method between two buffers, the whole grid synchronised after each.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void grid_jacobi(float *first, float *second, int sweeps, int n) {
  cg::grid_group grid = cg::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float *from = first;
  float *to = second;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    if (i > 0 && i < n - 1) to[i] = 0.5f * (from[i - 1] + from[i + 1]);
    grid.sync();
    float *kept = from;
    from = to;
    to = kept;
  }
}
