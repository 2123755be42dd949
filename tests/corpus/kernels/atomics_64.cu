// atomics_64.cu: every 64-bit atomic on one word each: sum, least, greatest, and, or, exclusive or, and a product.
__global__ void atomics_64(const unsigned long long *in, unsigned long long *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned long long x = in[i];
    atomicAdd(&out[0], x);
    atomicMin(&out[1], x);
    atomicMax(&out[2], x);
    atomicAnd(&out[3], x);
    atomicOr(&out[4], x);
    atomicXor(&out[5], x);
    unsigned long long seen = 0;
    unsigned long long expected;
    do {
      expected = seen;
      seen = atomicCAS(&out[6], expected, expected * (2ull * x + 1ull));
    } while (seen != expected);
  }
}
