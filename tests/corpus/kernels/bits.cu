// bits.cu: counting, finding, reversing, permuting and shifting the bits of words.
__global__ void bits(const unsigned *in, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned x = in[i];
    out[6 * i] = (unsigned)__popc(x);
    out[6 * i + 1] = (unsigned)__clz((int)x);
    out[6 * i + 2] = (unsigned)__ffs((int)x);
    out[6 * i + 3] = __brev(x);
    out[6 * i + 4] = __byte_perm(x, ~x, 0x3614u);
    out[6 * i + 5] = __funnelshift_l(x, x, 7u);
  }
}
