// tile_scan.cu: running sums within tiles of 16 threads, built from the tile's own shuffles and votes.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void tile_scan(const int *in, int *out, unsigned *odd, int n) {
  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = i < n ? in[i] : 0;
  unsigned votes = tile.ballot(value % 2 != 0);
  for (int distance = 1; distance < 16; distance *= 2) {
    int other = tile.shfl_up(value, distance);
    if (tile.thread_rank() >= distance) value += other;
  }
  if (i < n) out[i] = value;
  if (tile.thread_rank() == 0 && i < n) odd[i / 16] = votes;
}
