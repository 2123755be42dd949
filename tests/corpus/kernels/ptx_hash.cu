// ptx_hash.cu: a hash of each row of words: multiply, rotate by a funnel shift, and mix the high half of a product in.
extern "C" __global__ void ptx_hash(const unsigned *in, unsigned *out, int words, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  unsigned hash = 2166136261u;
  for (int i = 0; i < words; ++i)
    asm("{ .reg .u32 mixed, high;\n"
        "  xor.b32 mixed, %0, %1;\n"
        "  mul.lo.u32 mixed, mixed, 0x01000193;\n"
        "  mul.hi.u32 high, mixed, 0x9e3779b9;\n"
        "  shf.l.wrap.b32 mixed, mixed, mixed, 13;\n"
        "  xor.b32 %0, mixed, high; }"
        : "+r"(hash)
        : "r"(in[row * words + i]));
  out[row] = hash;
}
