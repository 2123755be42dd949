// ptx_bins.cu: a histogram: each block's in shared memory, then all of them together.
extern "C" __global__ void ptx_bins(const unsigned *in, unsigned *bins, int n) {
  __shared__ unsigned own[16];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 16) own[threadIdx.x] = 0;
  __syncthreads();
  if (i < n) {
    unsigned bin;
    asm("bfe.u32 %0, %1, 8, 4;" : "=r"(bin) : "r"(in[i]));
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(own + bin)) : "memory");
  }
  __syncthreads();
  if (threadIdx.x < 16)
    asm volatile("red.global.add.u32 [%0], %1;" ::"l"(bins + threadIdx.x), "r"(own[threadIdx.x]) : "memory");
}
