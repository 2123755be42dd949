// ptx_quantised_dot.cu: dot products of rows of bytes, four at a time.
extern "C" __global__ void ptx_quantised_dot(const int *a, const int *b, int *out, int words) {
  int sum = 0;
  for (int i = 0; i < words; ++i)
    asm("dp4a.s32.s32 %0, %1, %2, %0;"
        : "+r"(sum)
        : "r"(a[threadIdx.x * words + i]), "r"(b[blockIdx.x * words + i]));
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
