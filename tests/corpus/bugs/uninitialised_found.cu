// Where each block has the key: the answer "nowhere" was forgotten.
extern "C" __global__ void find(const int* x, int* where, int key, int n)
{
    __shared__ int found;
#ifdef FIXED
    if (threadIdx.x == 0) found = -1;
    __syncthreads();
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] == key) found = i;
    __syncthreads();
    if (threadIdx.x == 0) where[blockIdx.x] = found;  // BUG
}
