// pipeline_stages.cu: a cuda::pipeline of two stages hands tiles from one warp to another.
#include <cooperative_groups.h>
#include <cuda/pipeline>
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void pipeline_stages(const int *in, int *sums, int tiles) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ int stages[2][32];
  auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state, 32);
  int lane = threadIdx.x % 32;
  const int *mine = in + blockIdx.x * tiles * 32;
  if (threadIdx.x < 32) {
    for (int tile = 0; tile < tiles; ++tile) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stages[tile % 2][lane], &mine[tile * 32 + lane], sizeof(int), pipe);
      pipe.producer_commit();
    }
  } else {
    int sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      pipe.consumer_wait();
      sum += (tile + 1) * stages[tile % 2][31 - lane];
      pipe.consumer_release();
    }
    sums[blockIdx.x * 32 + lane] = sum;
  }
}
