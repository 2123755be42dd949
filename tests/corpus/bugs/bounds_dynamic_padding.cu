// Padding against bank conflicts was added to the index, not to the bytes of the launch.
#ifdef FIXED
#define SLOT(i) (i)
#else
#define SLOT(i) ((i) + (i) / 32)
#endif

extern "C" __global__ void reverse_blocks(const float* in, float* out)
{
    extern __shared__ float values[];  // blockDim.x floats
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[SLOT(threadIdx.x)] = in[i];  // BUG
    __syncthreads();
    out[i] = values[SLOT(blockDim.x - 1 - threadIdx.x)];
}
