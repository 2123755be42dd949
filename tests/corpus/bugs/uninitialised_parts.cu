// The first warp adds up one part of each of 32 warps, in a block that has four.
extern "C" __global__ void block_sums(const int* x, int* sums)
{
    __shared__ int parts[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int value = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffff, value, delta);
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    if (warp > 0) return;
#ifdef FIXED
    value = lane < blockDim.x / 32 ? parts[lane] : 0;
#else
    value = parts[lane];  // BUG
#endif
    for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffff, value, delta);
    if (lane == 0) sums[blockIdx.x] = value;
}
