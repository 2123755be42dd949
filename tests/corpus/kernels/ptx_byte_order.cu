// ptx_byte_order.cu: words with their bytes the other way round: one permutation each.
extern "C" __global__ void ptx_byte_order(const unsigned *in, unsigned *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned turned;
  asm("prmt.b32 %0, %1, 0, 0x0123;" : "=r"(turned) : "r"(in[i]));
  out[i] = turned;
}
