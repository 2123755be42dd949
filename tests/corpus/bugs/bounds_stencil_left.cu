// A three-point stencil whose guard forgets the left end.
extern "C" __global__ void smooth(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n - 1) return;
#ifdef FIXED
    if (i == 0) return;
#endif
    float left = in[i - 1];  // BUG
    out[i] = 0.25f * left + 0.5f * in[i] + 0.25f * in[i + 1];
}
