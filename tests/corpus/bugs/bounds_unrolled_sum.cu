// Four elements a step, and nothing for the rest when the count is no multiple of four.
extern "C" __global__ void sum_columns(const int* x, int* sums, int n)
{
    int sum = 0;
    for (int i = 4 * threadIdx.x; i < n; i += 4 * blockDim.x) {
#ifdef FIXED
        for (int k = i; k < min(i + 4, n); ++k) sum += x[k];
#else
        sum += x[i] + x[i + 1] + x[i + 2] + x[i + 3];  // BUG
#endif
    }
    sums[threadIdx.x] = sum;
}
