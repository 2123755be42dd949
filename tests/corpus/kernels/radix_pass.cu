// radix_pass.cu: one stable pass of a radix sort over 2 bits by one block, with scanned counts of digits.
#define BLOCK 128
#define DIGITS 4
__global__ void radix_pass(const unsigned *in, unsigned *out, int shift, int n) {
  __shared__ int counts[DIGITS][BLOCK];
  __shared__ int starts[DIGITS];
  unsigned key = threadIdx.x < n ? in[threadIdx.x] : 0u;
  int digit = threadIdx.x < n ? (int)(key >> shift & 3u) : -1;
  for (int k = 0; k < DIGITS; ++k) counts[k][threadIdx.x] = digit == k;
  __syncthreads();
  for (int distance = 1; distance < BLOCK; distance *= 2) {
    int others[DIGITS];
    for (int k = 0; k < DIGITS; ++k) others[k] = threadIdx.x >= distance ? counts[k][threadIdx.x - distance] : 0;
    __syncthreads();
    for (int k = 0; k < DIGITS; ++k) counts[k][threadIdx.x] += others[k];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    int start = 0;
    for (int k = 0; k < DIGITS; ++k) {
      starts[k] = start;
      start += counts[k][BLOCK - 1];
    }
  }
  __syncthreads();
  if (threadIdx.x < n) out[starts[digit] + counts[digit][threadIdx.x] - 1] = key;
}
