// Lines of a padded tile in shared memory that do not begin at multiples of 16 bytes.
#include <mma.h>
using namespace nvcuda;
#ifdef FIXED
#define LINE 24
#else
#define LINE 18
#endif

extern "C" __global__ void squares(const half* a, float* out)
{
    __shared__ __align__(32) half tile[16][LINE];
    for (int i = threadIdx.x; i < 256; i += 32) tile[i / 16][i % 16] = a[i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, &tile[0][0], LINE);  // BUG
    wmma::load_matrix_sync(right, &tile[0][0], LINE);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
}
