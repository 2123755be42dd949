// ptx_majority.cu: what two of three bit sets say, by one table of three bits.
extern "C" __global__ void ptx_majority(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(out[i]) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
}
