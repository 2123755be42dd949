// wmma_bits.cu: Hamming distances of rows of bits, and how many bits two rows share, 128 bits a step.
#include <mma.h>
using namespace nvcuda;

__global__ void wmma_bits(const unsigned *a, const unsigned *b, int *differ, int *common, int rows, int bits,
                          int others) {
  using namespace wmma::experimental;
  const int row = blockIdx.y * 8, other = blockIdx.x * 8, words = bits / 32;
  if (row >= rows || other >= others) return;
  wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> different, shared;
  wmma::fill_fragment(different, 0);
  wmma::fill_fragment(shared, 0);
  for (int k = 0; k < words; k += 4) {
    wmma::load_matrix_sync(left, a + row * words + k, bits);
    wmma::load_matrix_sync(right, b + other * words + k, bits);
    wmma::bmma_sync(different, left, right, different);
    wmma::bmma_sync(shared, left, right, shared, bmmaBitOpAND);
  }
  wmma::store_matrix_sync(differ + row * others + other, different, others, wmma::mem_row_major);
  wmma::store_matrix_sync(common + row * others + other, shared, others, wmma::mem_row_major);
}
