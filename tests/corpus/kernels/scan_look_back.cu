// scan_look_back.cu: inclusive sums of a whole array in one pass: a block adds up its predecessors' published sums,
// back to the last complete one, which every fourth block publishes.
#define BLOCK 64
#define EMPTY 0
#define PARTIAL 1
#define COMPLETE 2
__global__ void scan_look_back(const int *in, int *out, int *ticket, int *states, int *partials, int *completes,
                               int n) {
  __shared__ int sums[BLOCK];
  __shared__ int block;
  __shared__ int earlier;
  if (threadIdx.x == 0) block = atomicAdd(ticket, 1);
  __syncthreads();
  int i = block * BLOCK + threadIdx.x;
  sums[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int distance = 1; distance < BLOCK; distance *= 2) {
    int other = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
    __syncthreads();
    sums[threadIdx.x] += other;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partials[block] = sums[BLOCK - 1];
    __threadfence();
    atomicExch(&states[block], PARTIAL);
    int sum = 0;
    int from = block - 1;
    while (from >= 0) {
      int state = atomicAdd(&states[from], 0);
      __threadfence();
      if (state == COMPLETE) {
        sum += completes[from];
        break;
      }
      if (state == PARTIAL) {
        sum += partials[from];
        --from;
      }
    }
    if (block % 4 == 3) {
      completes[block] = sum + sums[BLOCK - 1];
      __threadfence();
      atomicExch(&states[block], COMPLETE);
    }
    earlier = sum;
  }
  __syncthreads();
  if (i < n) out[i] = earlier + sums[threadIdx.x];
}
