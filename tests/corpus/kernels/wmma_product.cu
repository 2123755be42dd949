// wmma_product.cu: matrix product of halves by fragments, a tile of the result per warp in an order
// that is given, operands read from global memory.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_product(const half *a, const half *b, float *c, const int *order, int tiles,
                             int inner, int columns) {
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  if (warp >= tiles) return;
  const int across = columns / 16, row = order[warp] / across * 16, column = order[warp] % across * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < inner; k += 16) {
    wmma::load_matrix_sync(left, a + row * inner + k, inner);
    wmma::load_matrix_sync(right, b + k * columns + column, columns);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * columns + column, sum, columns, wmma::mem_row_major);
}
