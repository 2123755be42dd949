// barrier_split.cu: each thread arrives at a cuda::barrier, does what needs nobody, and then waits for the others.
#include <cuda/barrier>

#pragma nv_diag_suppress static_var_with_dynamic_init

__global__ void barrier_split(const int *in, int *out, int rounds) {
  __shared__ int values[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> filled, read;
  int i = threadIdx.x;
  if (i == blockDim.x - 1) {
    init(&filled, blockDim.x);
    init(&read, blockDim.x);
  }
  __syncthreads();
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    values[i] = in[(blockIdx.x * rounds + round) * 64 + i];
    auto token = filled.arrive();
    int own = values[i];
    filled.wait(std::move(token));
    sum += own - values[63 - i] * (round + 2);
    read.arrive_and_wait();
  }
  out[blockIdx.x * 64 + i] = sum;
}
