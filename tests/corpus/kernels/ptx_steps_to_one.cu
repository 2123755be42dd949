// ptx_steps_to_one.cu: how many steps of halving, or of three times and one more, lead to one, by labels.
extern "C" __global__ void ptx_steps_to_one(const unsigned *in, unsigned *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  asm("{\n\t"
      ".reg .pred done, odd;\n\t"
      ".reg .b32 x, low;\n\t"
      "mov.b32 x, %1;\n\t"
      "mov.b32 %0, 0;\n\t"
      "NEXT: setp.le.u32 done, x, 1;\n\t"
      "@done bra END;\n\t"
      "and.b32 low, x, 1;\n\t"
      "setp.ne.u32 odd, low, 0;\n\t"
      "@odd mad.lo.u32 x, x, 3, 1;\n\t"
      "@!odd shr.u32 x, x, 1;\n\t"
      "add.u32 %0, %0, 1;\n\t"
      "bra NEXT;\n\t"
      "END:\n\t"
      "}"
      : "=&r"(out[i])
      : "r"(in[i]));
}
