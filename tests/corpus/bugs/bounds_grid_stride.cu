// A grid-stride loop that looks one element ahead.
extern "C" __global__ void differences(const int* x, int* out, int n)
{
#ifdef FIXED
    int last = n - 1;
#else
    int last = n;
#endif
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < last; i += gridDim.x * blockDim.x) {
        int next = x[i + 1];  // BUG
        out[i] = next - x[i];
    }
}
