// producer_consumer.cu: the first warp loads tiles, the second adds them up; flags in shared memory hand two slots
// over.
#define SLOTS 2
__global__ void producer_consumer(const int *in, int *sums, int tiles) {
  __shared__ int slots[SLOTS][32];
  __shared__ int full[SLOTS];
  int lane = threadIdx.x % 32;
  int start = blockIdx.x * tiles * 32;
  if (threadIdx.x < SLOTS) full[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int tile = 0; tile < tiles; ++tile) {
      int slot = tile % SLOTS;
      while (atomicAdd(&full[slot], 0) != 0) __nanosleep(20);
      __threadfence_block();
      slots[slot][lane] = in[start + tile * 32 + lane];
      __syncwarp();
      if (lane == 0) {
        __threadfence_block();
        atomicExch(&full[slot], 1);
      }
    }
  } else {
    int sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      int slot = tile % SLOTS;
      while (atomicAdd(&full[slot], 0) != 1) __nanosleep(20);
      __threadfence_block();
      sum += (tile + 1) * slots[slot][lane];
      __syncwarp();
      if (lane == 0) {
        __threadfence_block();
        atomicExch(&full[slot], 0);
      }
    }
    sums[blockIdx.x * 32 + lane] = sum;
  }
}
