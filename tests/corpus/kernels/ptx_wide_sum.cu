// ptx_wide_sum.cu: sums of numbers of 128 bits, the lower half first: the carry passes through the flag.
extern "C" __global__ void ptx_wide_sum(const unsigned long long *a, const unsigned long long *b,
                                        unsigned long long *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  asm("{\n\t"
      "add.cc.u64 %0, %2, %4;\n\t"
      "addc.u64 %1, %3, %5;\n\t"
      "}"
      : "=&l"(out[2 * i]), "=l"(out[2 * i + 1])
      : "l"(a[2 * i]), "l"(a[2 * i + 1]), "l"(b[2 * i]), "l"(b[2 * i + 1]));
}
