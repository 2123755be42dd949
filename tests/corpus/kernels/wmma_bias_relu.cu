// wmma_bias_relu.cu: a layer of a network: a product, a bias for every column, negative values cut off.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_bias_relu(const half *x, const half *weights, const float *bias, float *out, int inner,
                               int columns) {
  __shared__ __align__(32) float biases[16][20];
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  for (int i = threadIdx.x; i < 256; i += 32) biases[i / 16][i % 16] = bias[column + i % 16];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::load_matrix_sync(sum, &biases[0][0], 20, wmma::mem_row_major);
  for (int k = 0; k < inner; k += 16) {
    wmma::load_matrix_sync(left, x + row * inner + k, inner);
    wmma::load_matrix_sync(right, weights + column * inner + k, inner);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = fmaxf(sum.x[i], 0.0f);
  wmma::store_matrix_sync(out + row * columns + column, sum, columns, wmma::mem_row_major);
}
