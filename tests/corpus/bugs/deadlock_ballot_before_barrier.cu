// Threads without an element leave the loop early and wait at the barrier for a warp that still votes.
extern "C" __global__ void count_even(const int* x, int* count, int n)
{
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    if (threadIdx.x < n) {
#ifdef FIXED
        unsigned lanes = n - (threadIdx.x & ~31) >= 32 ? 0xffffffff : (1u << n % 32) - 1;
#else
        unsigned lanes = 0xffffffff;
#endif
        unsigned even = __ballot_sync(lanes, x[threadIdx.x] % 2 == 0);  // BUG
        if (threadIdx.x % 32 == 0) atomicAdd(&total, __popc(even));
    }
    __syncthreads();
    if (threadIdx.x == 0) *count = total;
}
