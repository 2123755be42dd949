// wmma_int8.cu: signed bytes, sums that stop at the ends of their range, scaled back to bytes through shared memory.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_int8(const signed char *a, const signed char *b, const int *start, signed char *out, int shift) {
  __shared__ __align__(32) int sums[16][20];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  const int tile = blockIdx.x * 256, t = threadIdx.x;
  wmma::load_matrix_sync(left, a + tile, 16);
  wmma::load_matrix_sync(right, b + tile, 16);
  wmma::load_matrix_sync(sum, start + tile, 16, wmma::mem_row_major);
  wmma::mma_sync(sum, left, right, sum, true);
  wmma::store_matrix_sync(&sums[0][0], sum, 20, wmma::mem_row_major);
  __syncwarp();
  for (int i = t; i < 256; i += 32) out[tile + i] = (signed char)(sums[i / 16][i % 16] >> shift);
}
