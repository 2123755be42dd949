// wmma_gram.cu: products of all columns with each other: tiles on and above the diagonal, and their mirror images.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_gram(const __nv_bfloat16 *x, float *gram, int rows, int columns) {
  const int i = blockIdx.y * 16, j = blockIdx.x * 16;
  if (i > j || j >= columns) return;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::col_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < rows; k += 16) {
    wmma::load_matrix_sync(left, x + k * columns + i, columns);
    wmma::load_matrix_sync(right, x + k * columns + j, columns);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(gram + i * columns + j, sum, columns, wmma::mem_row_major);
  if (i != j) wmma::store_matrix_sync(gram + j * columns + i, sum, columns, wmma::mem_col_major);
}
