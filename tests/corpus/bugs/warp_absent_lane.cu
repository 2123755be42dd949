// A broadcast from the last lane of each warp, in a block whose last warp is not full.
extern "C" __global__ void minus_last(const int* x, int* out)
{
    int warp = threadIdx.x / 32;
#ifdef FIXED
    unsigned lanes = min(blockDim.x - 32 * warp, 32u);
    unsigned mask = lanes == 32 ? 0xffffffff : (1u << lanes) - 1;
#else
    unsigned lanes = 32, mask = 0xffffffff;
#endif
    int last = __shfl_sync(mask, x[threadIdx.x], lanes - 1);  // BUG
    out[threadIdx.x] = x[threadIdx.x] - last;
}
