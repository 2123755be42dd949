// Half of the block waits inside a branch for a barrier that the other half never reaches.
#define BLOCK 64

extern "C" __global__ void fold(const int* x, int* out)
{
    __shared__ int tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    tile[threadIdx.x] = x[i];
#ifdef FIXED
    __syncthreads();
    if (threadIdx.x < BLOCK / 2) {
#else
    if (threadIdx.x < BLOCK / 2) {
        __syncthreads();  // BUG
#endif
        tile[threadIdx.x] += tile[threadIdx.x + BLOCK / 2];
    }
    __syncthreads();  // AND
    out[i] = tile[threadIdx.x % (BLOCK / 2)];
}
