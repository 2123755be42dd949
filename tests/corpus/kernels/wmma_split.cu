// wmma_split.cu: a long inner dimension split among the warps of a block, whose sums meet in shared memory.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_split(const half *a, const half *b, float *c, int inner) {
  __shared__ __align__(32) float parts[4][256];
  const int t = threadIdx.x, warp = t / 32, length = inner / 4;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = warp * length; k < (warp + 1) * length; k += 16) {
    wmma::load_matrix_sync(left, a + k * 16, 16);
    wmma::load_matrix_sync(right, b + k * 16, 16);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(parts[warp], sum, 16, wmma::mem_row_major);
  __syncthreads();
  for (int i = t; i < 256; i += 128) c[i] = parts[0][i] + parts[1][i] + parts[2][i] + parts[3][i];
}
