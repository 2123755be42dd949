// philox.cu: the counter-based generator Philox 4x32-10: four numbers for each counter.
__device__ uint4 philox_round(uint4 counter, unsigned key_low, unsigned key_high) {
  unsigned high0 = __umulhi(0xD2511F53u, counter.x);
  unsigned low0 = 0xD2511F53u * counter.x;
  unsigned high1 = __umulhi(0xCD9E8D57u, counter.z);
  unsigned low1 = 0xCD9E8D57u * counter.z;
  return make_uint4(high1 ^ counter.y ^ key_low, low1, high0 ^ counter.w ^ key_high, low0);
}

__global__ void philox(uint4 *out, unsigned key_low, unsigned key_high, unsigned stream, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint4 counter = make_uint4((unsigned)i, stream, 0u, 0u);
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key_low, key_high);
    key_low += 0x9E3779B9u;
    key_high += 0xBB67AE85u;
  }
  out[i] = counter;
}
