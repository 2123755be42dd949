// One slot a warp, for the eight warps of the block that the kernel was first written for.
#ifdef FIXED
#define WARPS 32
#else
#define WARPS 8
#endif

extern "C" __global__ void block_sums(const int* x, int* sums)
{
    __shared__ int parts[WARPS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int value = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffff, value, delta);
    if (lane == 0) parts[warp] = value;  // BUG
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0;
        for (int k = 0; k < blockDim.x / 32; ++k) total += parts[k];
        sums[blockIdx.x] = total;
    }
}
