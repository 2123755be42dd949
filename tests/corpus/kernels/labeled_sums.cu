// labeled_sums.cu: the lanes of a warp that have the same label add up their values; the first of each adds for all.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void labeled_sums(const int *labels, const int *values, int *sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  auto active = cg::coalesced_threads();
  auto same = cg::labeled_partition(active, labels[i]);
  int sum = cg::reduce(same, values[i], cg::plus<int>());
  if (same.thread_rank() == 0) atomicAdd(&sums[labels[i]], sum);
}
