// A sum of each block in shared memory: the last block has no values for its last threads, and adds them all the same.
#define BLOCK 128

extern "C" __global__ void block_sums(const int* x, int* sums, int n)
{
    __shared__ int tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) tile[threadIdx.x] = x[i];
#ifdef FIXED
    else tile[threadIdx.x] = 0;
#endif
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            int other = tile[threadIdx.x + half];  // BUG
            tile[threadIdx.x] += other;
        }
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = tile[0];
}
