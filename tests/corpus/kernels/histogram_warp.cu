// histogram_warp.cu: lanes with the same key are matched, and the first of them adds for all.
__global__ void histogram_warp(const int *keys, unsigned *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int key = i < n ? keys[i] : -1;
  unsigned same = __match_any_sync(0xffffffffu, key);
  int leader = __ffs(same) - 1;
  if (i < n && threadIdx.x % 32 == leader) atomicAdd(&bins[key], (unsigned)__popc(same));
}
