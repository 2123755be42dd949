// All lanes shuffle with a mask that names the first half.
extern "C" __global__ void swap_pairs(const int* x, int* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
    out[i] = __shfl_xor_sync(0xffffffff, x[i], 1);
#else
    out[i] = __shfl_xor_sync(0x0000ffff, x[i], 1);  // BUG
#endif
}
