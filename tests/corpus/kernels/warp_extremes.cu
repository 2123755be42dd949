// warp_extremes.cu: least, greatest, sum and common bits of every 32 elements by the warp's reduction instructions.
__global__ void warp_extremes(const int *in, int *low, int *high, int *sum, unsigned *bits, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = i < n ? in[i] : in[n - 1];
  int least = __reduce_min_sync(0xffffffffu, value);
  int greatest = __reduce_max_sync(0xffffffffu, value);
  int total = __reduce_add_sync(0xffffffffu, i < n ? value : 0);
  unsigned either = __reduce_xor_sync(0xffffffffu, i < n ? (unsigned)value : 0u);
  if (threadIdx.x % 32 == 0 && i < n) {
    low[i / 32] = least;
    high[i / 32] = greatest;
    sum[i / 32] = total;
    bits[i / 32] = either;
  }
}
