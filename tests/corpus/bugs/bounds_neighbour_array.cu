// Reversing one element too far: what is hit is the array that lies behind in memory.
extern "C" __global__ void reverse(const int* in, int* out, int* marks, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    marks[i] = 1;
#ifdef FIXED
    out[n - 1 - i] = in[i];
#else
    out[n - i] = in[i];  // BUG
#endif
}
