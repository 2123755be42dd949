// A result in shared memory that lanes read before it is known to be there.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void square_rows(const half* a, float* out)
{
    __shared__ __align__(32) float result[16][16];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, a, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(&result[0][0], sum, 16, wmma::mem_row_major);  // AND
#ifdef FIXED
    __syncwarp();
#endif
    if (threadIdx.x < 16) {
        float total = 0;
        for (int j = 0; j < 16; ++j) total += result[threadIdx.x][j];  // BUG
        out[threadIdx.x] = total;
    }
}
