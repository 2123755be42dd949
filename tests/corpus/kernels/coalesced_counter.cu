// coalesced_counter.cu: the threads that came into a branch form a group, whose first one adds for all.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void coalesced_counter(const int *in, int *kept, int *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 3 == 0) {
    cg::coalesced_group group = cg::coalesced_threads();
    int base = 0;
    if (group.thread_rank() == 0) base = atomicAdd(count, (int)group.size());
    base = group.shfl(base, 0);
    kept[base + group.thread_rank()] = in[i];
  }
}
