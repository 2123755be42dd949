// One thread computes what the whole block then uses, without waiting for it.
#define BLOCK 64

extern "C" __global__ void centre(const float* x, float* out)
{
    __shared__ float tile[BLOCK];
    __shared__ float mean;
    int i = blockIdx.x * BLOCK + threadIdx.x;
    tile[threadIdx.x] = x[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int k = 0; k < BLOCK; ++k) sum += tile[k];
        mean = sum / BLOCK;  // AND
    }
#ifdef FIXED
    __syncthreads();
#endif
    out[i] = x[i] - mean;  // BUG
}
