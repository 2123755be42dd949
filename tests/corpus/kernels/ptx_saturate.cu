// ptx_saturate.cu: sums and absolute differences of two rows of integers that stay at the ends of their range.
extern "C" __global__ void ptx_saturate(const int *a, const int *b, int2 *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int sum, apart;
  asm("add.sat.s32 %0, %1, %2;" : "=r"(sum) : "r"(a[i]), "r"(b[i]));
  asm("sub.sat.s32 %0, %1, %2;\n\tabs.s32 %0, %0;" : "=r"(apart) : "r"(a[i]), "r"(b[i]));
  out[i] = make_int2(sum, apart);
}
