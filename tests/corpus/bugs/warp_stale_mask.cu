// A mask of those with a positive value, used by all of them.
extern "C" __global__ void rank_positive(const int* x, int* counts)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned positive = __ballot_sync(0xffffffff, x[i] > 0);
#ifdef FIXED
    if (x[i] <= 0) return;
#endif
    int sum = __reduce_add_sync(positive, x[i]);  // BUG
    counts[i] = sum;
}
