// wmma_quantised.cu: a layer with weights and activations of a byte each, 8 x 32 outputs a warp; offsets are taken away
// by sums of rows and columns, and every output gets its column's scale.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_quantised(const unsigned char *x, const unsigned char *weights, const float *scales, float *out,
                               int inner, int columns, int x_zero, int w_zero) {
  __shared__ __align__(32) int products[8][36];
  const int t = threadIdx.x, row = blockIdx.y * 8, column = blockIdx.x * 32;
  wmma::fragment<wmma::matrix_a, 8, 32, 16, unsigned char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, unsigned char, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 8, 32, 16, int> sum;
  wmma::fill_fragment(sum, 0);
  for (int k = 0; k < inner; k += 16) {
    wmma::load_matrix_sync(left, x + row * inner + k, inner);
    wmma::load_matrix_sync(right, weights + k * columns + column, columns);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(products[0], sum, 36, wmma::mem_row_major);
  __syncwarp();
  int of_column = 0;
  for (int k = 0; k < inner; ++k) of_column += weights[k * columns + column + t];
  for (int r = 0; r < 8; ++r) {
    int of_row = 0;
    for (int k = 0; k < inner; ++k) of_row += x[(row + r) * inner + k];
    const int whole = products[r][t] - x_zero * of_column - w_zero * of_row + inner * x_zero * w_zero;
    out[(row + r) * columns + column + t] = whole * scales[column + t];
  }
}
