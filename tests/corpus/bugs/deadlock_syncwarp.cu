// Three lanes of a warp go on alone and wait for the whole warp, which waits for the block.
extern "C" __global__ void first_three(const int* x, int* out)
{
    __shared__ int value[32];
    int lane = threadIdx.x % 32;
    if (lane < 3) {
        value[lane] = 2 * x[lane];
#ifdef FIXED
        __syncwarp(0x7);
#else
        __syncwarp();  // BUG
#endif
        out[lane] = value[(lane + 1) % 3];
    }
    __syncthreads();
}
