// Dynamic shared memory shared out by hand: an odd number of ints, then doubles.
#define GROUPS 5

extern "C" __global__ void group_sums(const int* groups, const double* x, double* sums, int n)
{
    extern __shared__ __align__(8) unsigned char memory[];
#ifdef FIXED
    double* totals = reinterpret_cast<double*>(memory);
    int* counts = reinterpret_cast<int*>(totals + GROUPS);
#else
    int* counts = reinterpret_cast<int*>(memory);
    double* totals = reinterpret_cast<double*>(counts + GROUPS);
#endif
    if (threadIdx.x < GROUPS) {
        counts[threadIdx.x] = 0;
        totals[threadIdx.x] = 0.0;  // BUG
    }
    __syncthreads();
    if (threadIdx.x < n) {
        atomicAdd(&counts[groups[threadIdx.x]], 1);
        atomicAdd(&totals[groups[threadIdx.x]], x[threadIdx.x]);
    }
    __syncthreads();
    if (threadIdx.x < GROUPS && counts[threadIdx.x] > 0) sums[threadIdx.x] = totals[threadIdx.x];
}
