// A warp's product of two tiles: the tile's number is taken from the thread's, so that half a warp gets another one.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void squares(const half* a, float* out)
{
#ifdef FIXED
    int tile = threadIdx.x / 32;
#else
    int tile = threadIdx.x / 16;
#endif
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, a + tile * 256, 16);  // BUG
    wmma::load_matrix_sync(right, a + tile * 256, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(out + tile * 256, sum, 16, wmma::mem_row_major);
}
