// wmma_bfloat16.cu: tiles of 32 x 8 in bfloat16, the second operand by columns, with a third matrix added.
#include <mma.h>

__global__ void wmma_bfloat16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int inner, int columns) {
  using namespace nvcuda::wmma;
  const int tile = blockIdx.x * blockDim.y + threadIdx.y, row = blockIdx.y * 32;
  if (tile * 8 >= columns) return;
  fragment<matrix_a, 32, 8, 16, __nv_bfloat16, row_major> left;
  fragment<matrix_b, 32, 8, 16, __nv_bfloat16, col_major> right;
  fragment<accumulator, 32, 8, 16, float> sum;
  float *place = c + row * columns + tile * 8;
  load_matrix_sync(sum, place, columns, mem_row_major);
  for (int k = 0; k < inner; k += 16) {
    load_matrix_sync(left, a + row * inner + k, inner);
    load_matrix_sync(right, b + tile * 8 * inner + k, inner);
    mma_sync(sum, left, right, sum);
  }
  store_matrix_sync(place, sum, columns, mem_row_major);
}
