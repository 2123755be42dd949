// An inclusive scan in one buffer: a value is read by one thread while another replaces it.
#define BLOCK 64

extern "C" __global__ void scan(const int* in, int* out)
{
    __shared__ int line[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    line[threadIdx.x] = in[i];
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
#ifdef FIXED
        int before = threadIdx.x >= step ? line[threadIdx.x - step] : 0;
        __syncthreads();
        line[threadIdx.x] += before;
#else
        if (threadIdx.x >= step) line[threadIdx.x] += line[threadIdx.x - step];  // BUG
#endif
        __syncthreads();
    }
    out[i] = line[threadIdx.x];
}
