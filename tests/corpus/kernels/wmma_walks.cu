// wmma_walks.cu: how many walks of three steps lead from each node of a graph to each other: the cube of its matrix.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_walks(const half *steps, float *walks) {
  __shared__ __align__(32) half squared[16][24];
  __shared__ __align__(32) float sums[16][20];
  const int lane = threadIdx.x;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::load_matrix_sync(left, steps + blockIdx.x * 256, 16);
  wmma::load_matrix_sync(right, steps + blockIdx.x * 256, 16);
  wmma::fill_fragment(sum, 0.0f);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(&sums[0][0], sum, 20, wmma::mem_row_major);
  __syncwarp();
  for (int i = lane; i < 256; i += 32) squared[i / 16][i % 16] = __float2half(sums[i / 16][i % 16]);
  __syncwarp();
  wmma::load_matrix_sync(left, &squared[0][0], 24);
  wmma::fill_fragment(sum, 0.0f);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(walks + blockIdx.x * 256, sum, 16, wmma::mem_row_major);
}
