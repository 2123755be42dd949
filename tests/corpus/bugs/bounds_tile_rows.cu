// Tiles of sixteen rows, and the last one has fewer.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void copy_tiles(const half* a, half* out, int rows)
{
    int first = blockIdx.x * 16;
#ifdef FIXED
    if (first + 16 > rows) first = rows - 16;
#endif
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> tile;
    wmma::load_matrix_sync(tile, a + first * 16, 16, wmma::mem_row_major);  // BUG
    wmma::store_matrix_sync(out + first * 16, tile, 16, wmma::mem_row_major);
}
