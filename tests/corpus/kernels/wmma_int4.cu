// wmma_int4.cu: signed integers of four bits, eight in a word, multiplied by fragments of 8 x 8 x 32.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_int4(const unsigned *a, const unsigned *b, int *c, int rows, int inner, int columns) {
  namespace small = wmma::experimental::precision;
  const int row = blockIdx.y * 8, column = blockIdx.x * 8, words = inner / 8;
  if (row >= rows || column >= columns) return;
  wmma::fragment<wmma::matrix_a, 8, 8, 32, small::s4, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 32, small::s4, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 32, int> sum;
  wmma::fill_fragment(sum, 0);
  for (int k = 0; k < words; k += 4) {
    wmma::load_matrix_sync(left, a + row * words + k, inner);
    wmma::load_matrix_sync(right, b + column * words + k, inner);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * columns + column, sum, columns, wmma::mem_row_major);
}
