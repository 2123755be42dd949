// The largest value: compared, then stored, with every other thread in between.
extern "C" __global__ void largest(const int* x, int* best, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef FIXED
    atomicMax(best, x[i]);
#else
    if (x[i] > *best) *best = x[i];  // BUG
#endif
}
