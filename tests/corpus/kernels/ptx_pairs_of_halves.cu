// ptx_pairs_of_halves.cu: floats as pairs of halves, the first in the lower half of a word.
extern "C" __global__ void ptx_pairs_of_halves(const float *in, unsigned *out, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out[i]) : "f"(in[2 * i + 1]), "f"(in[2 * i]));
}
