// A line with a halo on both sides, declared with room for one side.
#define BLOCK 128
#ifdef FIXED
#define LINE (BLOCK + 2)
#else
#define LINE (BLOCK + 1)
#endif

extern "C" __global__ void laplace(const float* in, float* out, int n)
{
    __shared__ float line[LINE];
    int i = blockIdx.x * BLOCK + threadIdx.x, at = threadIdx.x + 1;
    line[at] = in[i];
    if (threadIdx.x == 0) line[0] = i > 0 ? in[i - 1] : 0.0f;
    if (threadIdx.x == BLOCK - 1) line[at + 1] = i + 1 < n ? in[i + 1] : 0.0f;  // BUG
    __syncthreads();
    out[i] = line[at - 1] - 2 * line[at] + line[at + 1];
}
