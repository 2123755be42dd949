// wmma_double.cu: C = alpha A B + beta C in doubles, tiles of 8 x 8, element by element on fragments of one kind.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_double(const double *a, const double *b, double *c, double alpha, double beta, int inner,
                            int columns) {
  const int row = blockIdx.y * 8, column = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 8;
  if (column >= columns) return;
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum, before;
  wmma::fill_fragment(sum, 0.0);
  for (int k = 0; k < inner; k += 4) {
    wmma::load_matrix_sync(left, a + row * inner + k, inner);
    wmma::load_matrix_sync(right, b + k * columns + column, columns);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::load_matrix_sync(before, c + row * columns + column, columns, wmma::mem_row_major);
  for (int i = 0; i < before.num_elements; ++i) before.x[i] = alpha * sum.x[i] + beta * before.x[i];
  wmma::store_matrix_sync(c + row * columns + column, before, columns, wmma::mem_row_major);
}
