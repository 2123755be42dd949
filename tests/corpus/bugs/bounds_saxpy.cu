// y = a x + y: the last block has more threads than there are elements left.
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
    if (i >= n) return;
#endif
    float term = a * x[i];  // BUG
    y[i] += term;
}
