// A tile with a halo on both sides, of which only the left one is loaded.
#define BLOCK 128

extern "C" __global__ void smooth(const float* in, float* out)
{
    __shared__ float tile[BLOCK + 2];
    int i = blockIdx.x * BLOCK + threadIdx.x + 1;  // in has one element more on each side
    tile[threadIdx.x + 1] = in[i];
    if (threadIdx.x == 0) tile[0] = in[i - 1];
#ifdef FIXED
    if (threadIdx.x == BLOCK - 1) tile[BLOCK + 1] = in[i + 1];
#endif
    __syncthreads();
    float right = tile[threadIdx.x + 2];  // BUG
    out[i - 1] = 0.25f * tile[threadIdx.x] + 0.5f * tile[threadIdx.x + 1] + 0.25f * right;
}
