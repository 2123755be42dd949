// A tree sum in shared memory with the barrier before the loop instead of in it.
#define BLOCK 64

extern "C" __global__ void block_sums(const int* x, int* sums)
{
    __shared__ int tile[BLOCK];
    tile[threadIdx.x] = x[blockIdx.x * BLOCK + threadIdx.x];
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];  // BUG
#ifdef FIXED
        __syncthreads();
#endif
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = tile[0];
}
