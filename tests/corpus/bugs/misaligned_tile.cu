// A tile that begins in the middle of 32 bytes: its first column is one too far to the right.
#include <mma.h>
using namespace nvcuda;
#ifdef FIXED
#define FIRST 16
#else
#define FIRST 17
#endif

extern "C" __global__ void second_square(const half* a, float* out)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, a + FIRST, 48);  // BUG
    wmma::load_matrix_sync(right, a + 16, 48);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
}
