// A histogram in shared memory that nobody set to zero.
#define BINS 32

extern "C" __global__ void histogram(const unsigned char* data, unsigned* totals, int n)
{
    __shared__ unsigned bins[BINS];
#ifdef FIXED
    if (threadIdx.x < BINS) bins[threadIdx.x] = 0;
    __syncthreads();
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[data[i] % BINS], 1u);  // BUG
    __syncthreads();
    if (threadIdx.x < BINS) atomicAdd(&totals[threadIdx.x], bins[threadIdx.x]);
}
