// Keeping what is positive: the place to put it comes from a counter that is read and written, not added to.
extern "C" __global__ void keep_positive(const int* x, int* kept, int* count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || x[i] <= 0) return;
#ifdef FIXED
    int at = atomicAdd(count, 1);
#else
    int at = (*count)++;  // BUG
#endif
    kept[at] = 1;
}
