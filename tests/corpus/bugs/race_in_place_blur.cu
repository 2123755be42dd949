// A blur that writes to where it reads from: inside a block the tile protects it, between blocks nothing does.
#define BLOCK 64

extern "C" __global__ void blur(float* x, float* out, int n)
{
    __shared__ float tile[BLOCK + 2];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    tile[threadIdx.x + 1] = x[i];
    if (threadIdx.x == 0) tile[0] = i > 0 ? x[i - 1] : 0.0f;  // BUG
    if (threadIdx.x == BLOCK - 1) tile[BLOCK + 1] = i < n - 1 ? x[i + 1] : 0.0f;
    __syncthreads();
    float mean = 0.25f * tile[threadIdx.x] + 0.5f * tile[threadIdx.x + 1] + 0.25f * tile[threadIdx.x + 2];
#ifdef FIXED
    out[i] = mean;
#else
    x[i] = mean;  // AND
#endif
}
