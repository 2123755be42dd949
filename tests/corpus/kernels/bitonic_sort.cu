// bitonic_sort.cu: each block sorts 128 keys in shared memory.
#define COUNT 128
__global__ void bitonic_sort(const int *in, int *out, int n) {
  __shared__ int keys[COUNT];
  int i = blockIdx.x * COUNT + threadIdx.x;
  keys[threadIdx.x] = i < n ? in[i] : 0x7fffffff;
  __syncthreads();
  for (int size = 2; size <= COUNT; size *= 2) {
    for (int distance = size / 2; distance > 0; distance /= 2) {
      int other = threadIdx.x ^ distance;
      if (other > threadIdx.x) {
        int mine = keys[threadIdx.x];
        int theirs = keys[other];
        bool ascending = (threadIdx.x & size) == 0;
        if ((mine > theirs) == ascending) {
          keys[threadIdx.x] = theirs;
          keys[other] = mine;
        }
      }
      __syncthreads();
    }
  }
  if (i < n) out[i] = keys[threadIdx.x];
}
