// A histogram of bytes with 64 bins, indexed by the byte itself.
#define BINS 64

extern "C" __global__ void histogram(const unsigned char* data, unsigned* bins, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef FIXED
    int bin = data[i] * BINS / 256;
#else
    int bin = data[i];
#endif
    atomicAdd(&bins[bin], 1u);  // BUG
}
