// monte_carlo.cu: points in the unit square counted in integers when they fall into the quarter circle.
__device__ unsigned next_random(unsigned *state) {
  unsigned x = *state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  *state = x;
  return x;
}

__global__ void monte_carlo(const unsigned *seeds, unsigned long long *inside, int tries, int n) {
  __shared__ unsigned hits;
  if (threadIdx.x == 0) hits = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned state = seeds[i];
    for (int k = 0; k < tries; ++k) {
      unsigned long long x = next_random(&state) >> 1;
      unsigned long long y = next_random(&state) >> 1;
      if (x * x + y * y < 1ull << 62) atomicAdd(&hits, 1u);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(inside, (unsigned long long)hits);
}
