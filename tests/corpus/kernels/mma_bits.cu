// mma_bits.cu: how many bits rows of 256 bits share, a warp for sixteen rows and eight others.

__device__ void count_common(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
               "{%8, %9}, {%0, %1, %2, %3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void mma_bits(const unsigned *a, const unsigned *b, int *common, int others) {
  const int lane = threadIdx.x, group = lane / 4, four = lane % 4, row = blockIdx.y * 16, other = blockIdx.x * 8;
  int sum[4] = {};
  const unsigned x[4] = {a[(row + group) * 8 + four], a[(row + group + 8) * 8 + four], a[(row + group) * 8 + four + 4],
                         a[(row + group + 8) * 8 + four + 4]};
  const unsigned y[2] = {b[(other + group) * 8 + four], b[(other + group) * 8 + four + 4]};
  count_common(sum, x, y);
  for (int i = 0; i < 4; ++i) common[(row + group + i / 2 * 8) * others + other + four * 2 + i % 2] = sum[i];
}
