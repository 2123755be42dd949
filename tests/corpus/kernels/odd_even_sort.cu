// odd_even_sort.cu: one block sorts an array of odd length by comparing neighbours.
__global__ void odd_even_sort(short *data, int n) {
  extern __shared__ short keys[];
  for (int k = threadIdx.x; k < n; k += blockDim.x) keys[k] = data[k];
  __syncthreads();
  for (int step = 0; step < n; ++step) {
    int left = 2 * threadIdx.x + step % 2;
    if (left + 1 < n) {
      short low = keys[left];
      short high = keys[left + 1];
      if (low > high) {
        keys[left] = high;
        keys[left + 1] = low;
      }
    }
    __syncthreads();
  }
  for (int k = threadIdx.x; k < n; k += blockDim.x) data[k] = keys[k];
}
