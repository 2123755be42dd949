// wmma_half_sums.cu: tiles of 8 x 32 with sums in half, stored by columns: the transposed product.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_half_sums(const half *a, const half *b, half *transposed, int rows, int inner, int columns) {
  const int row = blockIdx.y * 8, column = blockIdx.x * 32;
  if (row >= rows || column >= columns) return;
  wmma::fragment<wmma::matrix_a, 8, 32, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 8, 32, 16, half> sum;
  wmma::fill_fragment(sum, __float2half(0.0f));
  for (int k = 0; k < inner; k += 16) {
    wmma::load_matrix_sync(left, a + row * inner + k, inner);
    wmma::load_matrix_sync(right, b + k * columns + column, columns);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(transposed + column * rows + row, sum, rows, wmma::mem_col_major);
}
