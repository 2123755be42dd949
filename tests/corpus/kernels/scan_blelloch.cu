// scan_blelloch.cu: exclusive sums of each block's elements by an up-sweep and a down-sweep; also the blocks' totals.
#define COUNT 128
__global__ void scan_blelloch(const int *in, int *out, int *totals, int n) {
  __shared__ int tree[COUNT];
  int thread = threadIdx.x;
  int first = blockIdx.x * COUNT + thread;
  int second = first + COUNT / 2;
  tree[thread] = first < n ? in[first] : 0;
  tree[thread + COUNT / 2] = second < n ? in[second] : 0;
  int distance = 1;
  for (int active = COUNT / 2; active > 0; active /= 2) {
    __syncthreads();
    if (thread < active) tree[distance * (2 * thread + 2) - 1] += tree[distance * (2 * thread + 1) - 1];
    distance *= 2;
  }
  if (thread == 0) {
    totals[blockIdx.x] = tree[COUNT - 1];
    tree[COUNT - 1] = 0;
  }
  for (int active = 1; active < COUNT; active *= 2) {
    distance /= 2;
    __syncthreads();
    if (thread < active) {
      int left = distance * (2 * thread + 1) - 1;
      int right = distance * (2 * thread + 2) - 1;
      int kept = tree[left];
      tree[left] = tree[right];
      tree[right] += kept;
    }
  }
  __syncthreads();
  if (first < n) out[first] = tree[thread];
  if (second < n) out[second] = tree[thread + COUNT / 2];
}
