// mma_int8.cu: signed and unsigned bytes, 32 a step, straight from global memory to registers; sums wrap around.

__device__ void multiply(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void mma_int8(const unsigned *a, const unsigned *b, int *c, int rows, int words, int columns) {
  const int lane = threadIdx.x, group = lane / 4, four = lane % 4;
  const int row = blockIdx.y * 16 + group, column = blockIdx.x * 8 + group;
  if (row - group >= rows || column - group >= columns) return;
  int sum[4] = {2147483647, 0, 0, -2147483647};
  for (int k = 0; k < words; k += 8) {
    const unsigned x[4] = {a[row * words + k + four], a[(row + 8) * words + k + four], a[row * words + k + four + 4],
                           a[(row + 8) * words + k + four + 4]};
    const unsigned y[2] = {b[column * words + k + four], b[column * words + k + four + 4]};
    multiply(sum, x, y);
  }
  for (int i = 0; i < 4; ++i) c[(row + i / 2 * 8) * columns + blockIdx.x * 8 + four * 2 + i % 2] = sum[i];
}
