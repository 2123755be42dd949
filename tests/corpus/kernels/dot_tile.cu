// dot_tile.cu: dot products of short rows, each by a tile of 8 threads of a cooperative group.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void dot_tile(const int *a, const int *b, int *out, int rows, int columns) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  int row = blockIdx.x * (blockDim.x / 8) + tile.meta_group_rank();
  int sum = 0;
  if (row < rows) {
    for (int k = tile.thread_rank(); k < columns; k += tile.size()) sum += a[row * columns + k] * b[row * columns + k];
  }
  sum = cg::reduce(tile, sum, cg::plus<int>());
  if (row < rows && tile.thread_rank() == 0) out[row] = sum;
}
