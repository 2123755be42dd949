// Threads without a row of their own leave before a product that needs the whole warp.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void squares(const half* a, float* out, int rows)
{
#ifndef FIXED
    if (threadIdx.x >= rows) return;
#endif
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, a, 16);  // BUG
    wmma::load_matrix_sync(right, a, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
}
