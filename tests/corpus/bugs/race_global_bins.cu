// A histogram in global memory with a plain increment.
extern "C" __global__ void histogram(const unsigned char* data, unsigned* bins, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
#ifdef FIXED
        atomicAdd(&bins[data[i]], 1u);
#else
        bins[data[i]]++;  // BUG
#endif
    }
}
