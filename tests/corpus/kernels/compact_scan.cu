// compact_scan.cu: elements that pass a test kept in their order by one block, chunk after chunk, with scanned flags.
#define BLOCK 64
__global__ void compact_scan(const int *in, int *out, int *count, int n) {
  __shared__ int places[BLOCK];
  int base = 0;
  for (int first = 0; first < n; first += BLOCK) {
    int i = first + threadIdx.x;
    int value = i < n ? in[i] : 0;
    int keep = value % 2 != 0;
    places[threadIdx.x] = keep;
    __syncthreads();
    for (int distance = 1; distance < BLOCK; distance *= 2) {
      int other = threadIdx.x >= distance ? places[threadIdx.x - distance] : 0;
      __syncthreads();
      places[threadIdx.x] += other;
      __syncthreads();
    }
    if (keep == 1) out[base + places[threadIdx.x] - 1] = value;
    base += places[BLOCK - 1];
    __syncthreads();
  }
  if (threadIdx.x == 0) *count = base;
}
