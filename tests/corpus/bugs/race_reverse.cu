// Each block reversed through shared memory, without waiting until all of it is there.
#define BLOCK 128

extern "C" __global__ void reverse_blocks(const int* in, int* out)
{
    __shared__ int line[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    line[threadIdx.x] = in[i];  // AND
#ifdef FIXED
    __syncthreads();
#endif
    out[i] = line[BLOCK - 1 - threadIdx.x];  // BUG
}
