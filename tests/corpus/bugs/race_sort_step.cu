// Odd-even sort of each block in shared memory, with the barrier after the loop instead of after each step.
#define BLOCK 32

extern "C" __global__ void sort_blocks(const int* in, int* out)
{
    __shared__ int line[2 * BLOCK];
    int base = blockIdx.x * 2 * BLOCK, t = threadIdx.x;
    line[t] = in[base + t];
    line[t + BLOCK] = in[base + t + BLOCK];
    __syncthreads();
    for (int step = 0; step < 2 * BLOCK; ++step) {
        int at = 2 * t + step % 2;
        if (at + 1 < 2 * BLOCK) {
            int low = line[at], high = line[at + 1];  // BUG
            line[at] = min(low, high);
            line[at + 1] = max(low, high);  // AND
        }
#ifdef FIXED
        __syncthreads();
#endif
    }
    __syncthreads();
    out[base + t] = line[t];
    out[base + t + BLOCK] = line[t + BLOCK];
}
