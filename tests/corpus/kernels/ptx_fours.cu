// ptx_fours.cu: four words a load and a store, past the caches that nobody reads again.
extern "C" __global__ void ptx_fours(const unsigned *in, unsigned *out, int fours) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= fours) return;
  unsigned a, b, c, d;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "l"(&in[4 * i]));
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(&out[4 * i]), "r"(d), "r"(c), "r"(b), "r"(a)
               : "memory");
}
