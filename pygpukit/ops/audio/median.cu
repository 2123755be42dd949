// median.cu: running medians along one axis. The value of a rank is the one that has at most so many below it and more
// not above it: each thread counts, so that nothing is sorted or stored.
#include "numeric.cuh"

namespace pk {

struct Running {
  long long size;    // elements
  long long length;  // of the axis
  long long inner;   // elements from one place of the axis to the next
  int width;
  int rank;
};

__device__ __forceinline__ long long mirrored(long long place, long long length) {
  const long long turn = 2 * length, inside = ((place % turn) + turn) % turn;
  return inside < length ? inside : turn - 1 - inside;
}

template <class T>
__global__ void __launch_bounds__(256) running_rank(const T *x, T *out, Running call) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= call.size) return;
  const long long within = i % call.inner, place = i / call.inner % call.length;
  const T *line = x + (i - within - place * call.inner) + within;
  const long long first = place - call.width / 2;
  for (int candidate = 0; candidate < call.width; ++candidate) {
    const T value = line[mirrored(first + candidate, call.length) * call.inner];
    int below = 0, upto = 0;
    for (int other = 0; other < call.width; ++other) {
      const T compared = line[mirrored(first + other, call.length) * call.inner];
      below += compared < value;
      upto += compared <= value;
    }
    if (below <= call.rank && call.rank < upto) {
      out[i] = value;
      return;
    }
  }
  out[i] = x[i];  // NaN has no place in an order
}

}  // namespace pk
