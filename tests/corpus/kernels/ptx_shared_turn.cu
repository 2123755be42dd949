// ptx_shared_turn.cu: a block's words the other way round, through shared memory by its 32-bit addresses.
extern "C" __global__ void ptx_shared_turn(const unsigned *in, unsigned *out) {
  __shared__ unsigned tile[96];
  const unsigned at = (unsigned)__cvta_generic_to_shared(tile), i = threadIdx.x;
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at + 4 * i), "r"(in[blockIdx.x * 96 + i]) : "memory");
  __syncthreads();
  unsigned x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at + 4 * (95 - i)) : "memory");
  out[blockIdx.x * 96 + i] = x;
}
