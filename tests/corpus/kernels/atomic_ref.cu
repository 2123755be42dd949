// atomic_ref.cu: plain arrays counted and bounded through cuda::atomic_ref.
#include <cuda/atomic>

__global__ void atomic_ref(const int *in, unsigned *counts, int *largest, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(counts[in[i] & 7]);
  count.fetch_add(1u, cuda::memory_order_relaxed);
  cuda::atomic_ref<int, cuda::thread_scope_device> most(largest[0]);
  int seen = most.load(cuda::memory_order_relaxed);
  while (seen < in[i] && !most.compare_exchange_weak(seen, in[i])) {
  }
}
