// ptx_normalise.cu: words shifted until their highest bit is set, and by how much; zero stays as it is.
extern "C" __global__ void ptx_normalise(const unsigned *in, unsigned *out, int *shifts, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned shifted;
  int count;
  asm("{ .reg .pred zero;\n"
      "  clz.b32 %1, %2;\n"
      "  shl.b32 %0, %2, %1;\n"
      "  setp.eq.u32 zero, %2, 0;\n"
      "  @zero mov.s32 %1, -1; }"
      : "=&r"(shifted), "=&r"(count)
      : "r"(in[i]));
  out[i] = shifted;
  shifts[i] = count;
}
