// A warp's sum after the threads without an element have returned: the others read from lanes that are gone.
extern "C" __global__ void warp_sums(const int* x, int* sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
    int value = i < n ? x[i] : 0;
#else
    if (i >= n) return;
    int value = x[i];
#endif
    for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffff, value, delta);  // BUG
    if (threadIdx.x % 32 == 0) sums[i / 32] = value;
}
