// ptx_to_bytes.cu: floats rounded to the nearest even byte that there is, scaled, and what each becomes again.
extern "C" __global__ void ptx_to_bytes(const float *in, unsigned char *bytes, float *again, float scale, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned byte;
  asm("{ .reg .f32 scaled;\n"
      "  mul.rn.f32 scaled, %1, %2;\n"
      "  cvt.rni.sat.u8.f32 %0, scaled; }"
      : "=r"(byte)
      : "f"(in[i]), "f"(scale));
  bytes[i] = byte;
  asm("cvt.rn.f32.u32 %0, %1;" : "=f"(again[i]) : "r"(byte));
}
