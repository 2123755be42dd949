// A sum under a lock that orders who goes first, but not what is seen.
extern "C" __global__ void locked_sum(const int* x, int* total, int* lock)
{
    if (threadIdx.x > 0) return;
    while (atomicCAS(lock, 0, 1) != 0) {
    }
#ifdef FIXED
    __threadfence();
#endif
    *total += x[blockIdx.x];  // BUG
#ifdef FIXED
    __threadfence();
#endif
    atomicExch(lock, 0);
}
