// wmma_tf32.cu: matrix product of floats in tf32; every element of the operands is rounded before the product.
#include <mma.h>
using namespace nvcuda;

template <class Fragment>
__device__ void round_all(Fragment &f) {
  for (int i = 0; i < f.num_elements; ++i) f.x[i] = wmma::__float_to_tf32(f.x[i]);
}

__global__ void wmma_tf32(const float *a, const float *b, float *c, int inner, int columns) {
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::col_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  const int rows = gridDim.y * 16;
  for (int k = 0; k < inner; k += 8) {
    wmma::load_matrix_sync(left, a + k * rows + row, rows);
    wmma::load_matrix_sync(right, b + k * columns + column, columns);
    round_all(left);
    round_all(right);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * columns + column, sum, columns, wmma::mem_row_major);
}
