// wmma_bytes.cu: squared distances of unsigned bytes: |x|^2 + |y|^2 - 2 x y, the products by fragments of 32 x 8.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_bytes(const unsigned char *x, const unsigned char *y, int *distance, int length, int others) {
  __shared__ __align__(32) int products[32][12];
  const int row = blockIdx.y * 32, other = blockIdx.x * 8, mine = 31 - threadIdx.x;
  wmma::fragment<wmma::matrix_a, 32, 8, 16, unsigned char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, unsigned char, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 32, 8, 16, int> sum;
  wmma::fill_fragment(sum, 0);
  for (int k = 0; k < length; k += 16) {
    wmma::load_matrix_sync(left, x + row * length + k, length);
    wmma::load_matrix_sync(right, y + other * length + k, length);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(&products[0][0], sum, 12, wmma::mem_row_major);
  __syncwarp();
  int own = 0;
  for (int k = 0; k < length; ++k) own += x[(row + mine) * length + k] * x[(row + mine) * length + k];
  for (int j = 0; j < 8; ++j) {
    int theirs = 0;
    for (int k = 0; k < length; ++k) theirs += y[(other + j) * length + k] * y[(other + j) * length + k];
    distance[(row + mine) * others + other + j] = own + theirs - 2 * products[mine][j];
  }
}
