// The mean of each group, also of the groups that nobody is in.
extern "C" __global__ void means(const int* sums, const int* counts, int* out, int groups)
{
    int group = blockIdx.x * blockDim.x + threadIdx.x;
    if (group >= groups) return;
#ifdef FIXED
    out[group] = counts[group] ? sums[group] / counts[group] : 0;
#else
    out[group] = sums[group] / counts[group];  // BUG
#endif
}
