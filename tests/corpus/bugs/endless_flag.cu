// A thread waits for a flag that is raised only behind the barrier that it does not reach.
extern "C" __global__ void hand_over(const int* x, volatile int* flag, int* out)
{
#ifdef FIXED
    if (threadIdx.x == 0) {
        *flag = 1;
    }
    __syncthreads();
#endif
    if (threadIdx.x == 1) {
        while (*flag == 0) {  // BUG
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) *flag = 1;
    out[threadIdx.x] = x[threadIdx.x];
}
