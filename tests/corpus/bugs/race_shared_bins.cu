// A histogram in shared memory with a plain increment.
#define BINS 32

extern "C" __global__ void histogram(const unsigned char* data, unsigned* totals, int n)
{
    __shared__ unsigned bins[BINS];
    if (threadIdx.x < BINS) bins[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
    if (i < n) atomicAdd(&bins[data[i] % BINS], 1u);
#else
    if (i < n) bins[data[i] % BINS] += 1;  // BUG
#endif
    __syncthreads();
    if (threadIdx.x < BINS) atomicAdd(&totals[threadIdx.x], bins[threadIdx.x]);
}
