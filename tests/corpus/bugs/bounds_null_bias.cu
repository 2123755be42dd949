// A layer whose bias may be left out, and is used all the same.
extern "C" __global__ void activate(const float* x, const float* bias, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
#ifdef FIXED
    if (bias) value += bias[i];
#else
    value += bias[i];  // BUG
#endif
    y[i] = value > 0.0f ? value : 0.0f;
}
