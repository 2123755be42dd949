// wmma_scan.cu: running sums of 256 halves a warp by three products with triangles of ones: within rows, of whole rows,
// and both together.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_scan(const half *in, float *out) {
  __shared__ __align__(32) half upper[16][16];
  __shared__ __align__(32) half below[16][16];
  __shared__ __align__(32) half rows[16][16];
  __shared__ __align__(32) float sums[16][16];
  const int t = threadIdx.x, from = blockIdx.x * 256;
  for (int i = t; i < 256; i += 32) {
    upper[i / 16][i % 16] = __float2half(i / 16 <= i % 16 ? 1.0f : 0.0f);
    below[i / 16][i % 16] = __float2half(i / 16 > i % 16 ? 1.0f : 0.0f);
  }
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::load_matrix_sync(left, in + from, 16);
  wmma::load_matrix_sync(right, &upper[0][0], 16);
  wmma::fill_fragment(sum, 0.0f);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(&sums[0][0], sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = t; i < 256; i += 32) rows[i / 16][i % 16] = __float2half(sums[i / 16][15]);
  __syncwarp();
  wmma::load_matrix_sync(left, &below[0][0], 16);
  wmma::load_matrix_sync(right, &rows[0][0], 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(out + from, sum, 16, wmma::mem_row_major);
}
