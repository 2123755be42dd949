// mma_double.cu: doubles, 8 x 8 x 4 a step, with the running sum of the tile's own products kept in registers.

__device__ void multiply(double (&d)[2], const double (&a)[1], const double (&b)[1]) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d[0]), "+d"(d[1])
               : "d"(a[0]), "d"(b[0]));
}

__global__ void mma_double(const double *a, const double *b, double *c, int rows, int inner, int columns) {
  const int lane = threadIdx.x, group = lane / 4, four = lane % 4, row = blockIdx.y * 8, column = blockIdx.x * 8;
  double sum[2] = {};
  for (int first = 0; first < inner; first += 4) {
    const int k = first + four;
    const double x[1] = {row + group < rows && k < inner ? a[(row + group) * inner + k] : 0.0};
    const double y[1] = {column + group < columns && k < inner ? b[k * columns + column + group] : 0.0};
    multiply(sum, x, y);
  }
  for (int i = 0; i < 2; ++i) {
    const int n = column + four * 2 + i;
    if (row + group < rows && n < columns) c[(row + group) * columns + n] = sum[i];
  }
}
