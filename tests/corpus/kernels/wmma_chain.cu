// wmma_chain.cu: (A B) C of tiles: the first product goes through shared memory as halves.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_chain(const half *a, const half *b, const half *c, float *out) {
  __shared__ __align__(32) float first[16][20];
  __shared__ __align__(32) half middle[16][24];
  const int t = threadIdx.x, tile = blockIdx.x * 256;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::load_matrix_sync(left, a + tile, 16);
  wmma::load_matrix_sync(right, b + tile, 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(first[0], sum, 20, wmma::mem_row_major);
  __syncwarp();
  for (int i = t; i < 256; i += 32) middle[i / 16][i % 16] = __float2half(first[i / 16][i % 16]);
  __syncwarp();
  wmma::load_matrix_sync(left, middle[0], 24);
  wmma::load_matrix_sync(right, c + tile, 16);
  wmma::fill_fragment(sum, 0.0f);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(out + tile, sum, 16, wmma::mem_row_major);
}
