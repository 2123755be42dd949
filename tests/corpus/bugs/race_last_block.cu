// The last block adds up what all blocks left: nothing says that what they left is to be seen before their count.
#define BLOCK 64
__device__ unsigned blocks_done;

extern "C" __global__ void total(const int* x, int* parts, int* sum)
{
    __shared__ int tile[BLOCK];
    __shared__ bool last;
    tile[threadIdx.x] = x[blockIdx.x * BLOCK + threadIdx.x];
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
    }
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = tile[0];  // AND
#ifdef FIXED
        __threadfence();
#endif
        last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
#ifdef FIXED
        __threadfence();
#endif
    }
    __syncthreads();
    if (!last || threadIdx.x > 0) return;
    int all = 0;
    for (int k = 0; k < gridDim.x; ++k) all += parts[k];  // BUG
    *sum = all;
}
