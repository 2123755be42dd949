// mma_tf32.cu: floats in tf32, eight a step; a row of the second operand is a column of the product.

__device__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void mma_tf32(const float *a, const float *b, float *c, int rows, int inner, int columns) {
  const int lane = threadIdx.x, group = lane / 4, four = lane % 4;
  const int row = blockIdx.y * 16, column = (blockIdx.x * blockDim.y + threadIdx.y) * 8;
  if (column >= columns) return;
  const float *top = a + (row + group) * inner + four, *other = b + (column + group) * inner + four;
  float sum[4] = {};
  for (int k = 0; k < inner; k += 8) {
    const unsigned x[4] = {__float_as_uint(top[k]), __float_as_uint(top[k + 8 * inner]), __float_as_uint(top[k + 4]),
                           __float_as_uint(top[k + 8 * inner + 4])};
    const unsigned y[2] = {__float_as_uint(other[k]), __float_as_uint(other[k + 4])};
    multiply(sum, x, y);
  }
  for (int i = 0; i < 4; ++i) c[(row + group + i / 2 * 8) * columns + column + four * 2 + i % 2] = sum[i];
}
