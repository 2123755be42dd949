// interp.cu: piecewise linear interpolation, with NumPy's rules for NaN and for values outside of the points.
#include "numeric.cuh"

namespace pk {

struct InterpCall {
  long long size;    // values looked for
  long long points;  // of which there is one at least
  long long has_ends;   // 1: left, 2: right: else the first and the last value
  double left, right;
};

__global__ void __launch_bounds__(256) interpolate(const double *x, const double *points, const double *values,
                                                   double *out, const __grid_constant__ InterpCall p) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.size) return;
  const double at = x[i];
  const double left = (p.has_ends & 1) != 0 ? p.left : values[0];
  const double right = (p.has_ends & 2) != 0 ? p.right : values[p.points - 1];
  if (p.points == 1) {  // NaN is neither below nor above it, as in NumPy
    out[i] = at < points[0] ? left : at > points[0] ? right : values[0];
    return;
  }
  if (at != at) {
    out[i] = at;
    return;
  }
  if (at > points[p.points - 1]) {
    out[i] = right;
    return;
  }
  if (at < points[0]) {
    out[i] = left;
    return;
  }
  long long low = 0, high = p.points;  // the last point that is not above
  while (high - low > 1) {
    const long long middle = low + (high - low) / 2;
    if (points[middle] <= at) {
      low = middle;
    } else {
      high = middle;
    }
  }
  if (low == p.points - 1 || points[low] == at) {
    out[i] = values[low];
    return;
  }
  const double slope = __ddiv_rn(__dsub_rn(values[low + 1], values[low]), __dsub_rn(points[low + 1], points[low]));
  double interpolated = __dadd_rn(__dmul_rn(slope, __dsub_rn(at, points[low])), values[low]);
  if (interpolated != interpolated) {  // an infinite slope or distance: from the other end, and of equal values those
    interpolated = __dadd_rn(__dmul_rn(slope, __dsub_rn(at, points[low + 1])), values[low + 1]);
    if (interpolated != interpolated && values[low] == values[low + 1]) interpolated = values[low];
  }
  out[i] = interpolated;
}

}  // namespace pk
