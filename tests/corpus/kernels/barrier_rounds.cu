// barrier_rounds.cu: what a cuda::barrier does at the end of each phase, once for all of its threads.
#include <cuda/barrier>

struct Advance {
  int *step;
  __device__ void operator()() { *step = 2 * *step + 1; }
};

__global__ void barrier_rounds(const int *in, int *out, int rounds) {
  typedef cuda::barrier<cuda::thread_scope_block, Advance> Barrier;
  __shared__ alignas(16) char room[sizeof(Barrier)];
  __shared__ int step;
  Barrier &bar = *reinterpret_cast<Barrier *>(room);
  if (threadIdx.x == 0) {
    step = 1;
    new (&bar) Barrier(blockDim.x, Advance{&step});
  }
  __syncthreads();
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    sum += step * in[blockIdx.x * blockDim.x + threadIdx.x];
    bar.arrive_and_wait();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
