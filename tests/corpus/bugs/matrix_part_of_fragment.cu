// One is added to the first element that each lane holds, as if it were known where in the matrix that is.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void squares_and_one(const half* a, float* out)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, a, 16);
    wmma::mma_sync(sum, left, right, sum);
#ifdef FIXED
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] += 1.0f;
#else
    sum.x[0] += 1.0f;  // BUG
#endif
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);  // AND
}
