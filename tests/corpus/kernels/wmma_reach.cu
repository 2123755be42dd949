// wmma_reach.cu: which of 128 places can be reached in at most two steps, places as bits: a row and a column that share
// a bit share a place between.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_reach(const unsigned *from, const unsigned *into, unsigned char *reached) {
  __shared__ __align__(32) int ways[8][12];
  using namespace wmma::experimental;
  const int t = threadIdx.x, row = blockIdx.y * 8, column = blockIdx.x * 8;
  wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> count;
  wmma::load_matrix_sync(left, from + row * 4, 128);
  wmma::load_matrix_sync(right, into + column * 4, 128);
  wmma::fill_fragment(count, 0);
  wmma::bmma_sync(count, left, right, count, bmmaBitOpAND, bmmaAccumulateOpPOPC);
  wmma::store_matrix_sync(ways[0], count, 12, wmma::mem_row_major);
  __syncwarp();
  for (int i = t; i < 64; i += 32) {
    const int r = row + i / 8, c = column + i % 8;
    const bool direct = from[r * 4 + c / 32] >> c % 32 & 1u;
    reached[r * 128 + c] = direct || ways[i / 8][i % 8] > 0;
  }
}
