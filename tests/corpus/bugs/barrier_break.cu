// Steps until nothing changes, where each thread decides for itself when to stop.
#define BLOCK 64

extern "C" __global__ void collatz(const int* x, int* steps)
{
    __shared__ int longest;
    if (threadIdx.x == 0) longest = 0;
    __syncthreads();
    int value = x[threadIdx.x], count = 0;
    while (true) {
#ifdef FIXED
        if (!__syncthreads_or(value > 1)) break;
        if (value <= 1) continue;
#else
        if (value <= 1) break;
        __syncthreads();  // BUG
#endif
        value = value % 2 ? 3 * value + 1 : value / 2;
        ++count;
    }
    atomicMax(&longest, count);
    __syncthreads();  // AND
    steps[threadIdx.x] = count;
    if (threadIdx.x == 0) steps[BLOCK] = longest;
}
