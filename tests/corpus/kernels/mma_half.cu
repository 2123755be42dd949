// mma_half.cu: matrix product by mma.sync, operands in shared memory, read by ldmatrix, the second one transposed.
#include <cuda_fp16.h>

__device__ void read_left(unsigned (&to)[4], const half *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((unsigned)__cvta_generic_to_shared(row))
               : "memory");
}
__device__ void read_right(unsigned (&to)[2], const half *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"((unsigned)__cvta_generic_to_shared(row))
               : "memory");
}
__device__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void mma_half(const half *a, const half *b, float *c, int inner, int columns) {
  __shared__ __align__(16) half left[32][24];
  __shared__ __align__(16) half right[16][24];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, row = blockIdx.y * 32, column = blockIdx.x * 16;
  float sum[2][4] = {};
  for (int first = 0; first < inner; first += 16) {
    for (int i = t; i < 512; i += 64) left[i / 16][i % 16] = a[(row + i / 16) * inner + first + i % 16];
    for (int i = t; i < 256; i += 64) right[i / 16][i % 16] = b[(first + i / 16) * columns + column + i % 16];
    __syncthreads();
    unsigned x[4], y[2];
    read_left(x, &left[warp * 16 + lane % 16][lane / 16 * 8]);
    for (int n = 0; n < 2; ++n) {
      read_right(y, &right[lane % 16][n * 8]);
      multiply(sum[n], x, y);
    }
    __syncthreads();
  }
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 4; ++i)
      c[(row + warp * 16 + lane / 4 + i / 2 * 8) * columns + column + n * 8 + lane % 4 * 2 + i % 2] = sum[n][i];
}
