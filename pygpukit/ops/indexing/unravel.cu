// unravel.cu: positions in C order as coordinates along the axes.
#include "numeric.cuh"

namespace pk {

struct Axes {
  long long count;  // of positions
  long long ndim;
  long long shape[kMaxDims];
};

// out[axis][i] = coordinate of positions[i].
__global__ void __launch_bounds__(256)
    unravel(const long long *positions, long long *out, const __grid_constant__ Axes axes) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= axes.count) return;
  long long position = positions[i];
  for (long long axis = axes.ndim - 1; axis > 0; --axis) {
    const long long above = position / axes.shape[axis];
    out[axis * axes.count + i] = position - above * axes.shape[axis];
    position = above;
  }
  out[i] = position;
}

}  // namespace pk
