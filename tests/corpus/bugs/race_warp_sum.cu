// The sum of each warp in shared memory, relying on a warp to run in step.
#define BLOCK 64

extern "C" __global__ void warp_sums(const int* x, int* sums)
{
    __shared__ int values[BLOCK];
    int lane = threadIdx.x % 32, i = blockIdx.x * BLOCK + threadIdx.x;
    values[threadIdx.x] = x[i];
    __syncwarp();
    for (int half = 16; half > 0; half /= 2) {
        if (lane < half) values[threadIdx.x] += values[threadIdx.x + half];  // BUG
#ifdef FIXED
        __syncwarp();
#endif
    }
    if (lane == 0) sums[i / 32] = values[threadIdx.x];
}
