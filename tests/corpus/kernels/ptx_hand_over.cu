// ptx_hand_over.cu: tiles go from the threads of a block to each other through shared memory: an mbarrier says when a
// tile is there, another one when it has been read.
__device__ __forceinline__ void pass(unsigned barrier) {
  asm volatile("{ .reg .b64 state;\n"
               "  .reg .pred done;\n"
               "  .reg .u32 passed;\n"
               "  mbarrier.arrive.shared.b64 state, [%0];\n"
               "waiting:\n"
               "  mbarrier.test_wait.shared.b64 done, [%0], state;\n"
               "  @!done bra waiting; }" ::"r"(barrier)
               : "memory");
}

extern "C" __global__ void ptx_hand_over(const int *in, int *out, int tiles) {
  __shared__ int tile[64];
  __shared__ unsigned long long barriers[2];
  const int i = threadIdx.x, first = blockIdx.x * tiles * 64;
  const unsigned there = __cvta_generic_to_shared(barriers), read = there + 8;
  if (i > 61) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(there + 8 * (i - 62)) : "memory");
  __syncthreads();
  int sum = 0;
  for (int k = 0; k < tiles; ++k) {
    tile[i] = in[first + k * 64 + i];
    pass(there);
    sum += (k + 1) * tile[63 - i];
    pass(read);
  }
  out[blockIdx.x * 64 + i] = sum;
}
