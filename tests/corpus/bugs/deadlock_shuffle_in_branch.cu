// Half of a warp shuffles with a mask that names all of it, while the other half waits at the block's barrier.
extern "C" __global__ void half_sums(const int* x, int* sums)
{
    int lane = threadIdx.x % 32, i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = x[i];
    if (lane < 16) {
#ifdef FIXED
        for (int delta = 8; delta > 0; delta /= 2) value += __shfl_down_sync(0x0000ffff, value, delta, 16);
#else
        for (int delta = 8; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffff, value, delta, 16);  // BUG
#endif
    }
    __syncthreads();
    if (lane == 0) sums[i / 32] = value;
}
