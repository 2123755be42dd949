// merge.cu: the sum of arrays of one layout, multiplied, a leaky ReLU of that, and zeros where no sentence is.
#include "numeric.cuh"
#include "pack.cuh"

namespace pk {

struct Merge {
  long long packs, channels, length, last;  // packs: of N elements; last: channels are dense, else places
  long long count, has_inside;              // arrays; whether some places are no sentence's
  float factor, slope;
};

// inside: (length,). N divides channels, or length where places are dense.
template <class U, int N>
__global__ void __launch_bounds__(256)
    merge(const float *a, const float *b, const float *c, const float *d, const float *e, const float *f,
          const bool *inside, U *out, const __grid_constant__ Merge p) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.packs) return;
  const float *from[6] = {a, b, c, d, e, f};
  Pack<float, N> seen[6];
#pragma unroll
  for (int k = 0; k < 6; ++k) {
    if (k < p.count) seen[k] = load<N>(from[k] + i * N);
  }
  Pack<U, N> packed;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    float sum = seen[0].v[n];
#pragma unroll
    for (int k = 1; k < 6; ++k) {
      if (k < p.count) sum += seen[k].v[n];
    }
    sum *= p.factor;
    sum = sum > sum * p.slope ? sum : sum * p.slope;
    const long long place = p.last ? i * N / p.channels : (i * N + n) % p.length;
    packed.v[n] = convert<U>::from(p.has_inside && !inside[place] ? 0.0f : sum);
  }
  store(out + i * N, packed);
}

}  // namespace pk
