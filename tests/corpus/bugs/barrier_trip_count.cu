// A barrier in a loop that runs once more for some threads than for others.
#define BLOCK 64

extern "C" __global__ void neighbours(const int* x, int* sums, int n)
{
    __shared__ int chunk[BLOCK];
    __shared__ int all;
    int sum = 0;
    if (threadIdx.x == 0) all = 0;
#ifdef FIXED
    for (int base = 0; base < n; base += BLOCK) {
        int k = base + threadIdx.x;
        chunk[threadIdx.x] = k < n ? x[k] : 0;
#else
    for (int k = threadIdx.x; k < n; k += BLOCK) {
        chunk[threadIdx.x] = x[k];
#endif
        __syncthreads();  // BUG
        sum += chunk[threadIdx.x];
        __syncthreads();
    }
    atomicAdd(&all, sum);
    __syncthreads();  // AND
    sums[threadIdx.x] = all;
}
