// merge_sorted.cu: two sorted arrays merged: each element finds its rank in the other array by bisection.
__device__ int lower_bound(const int *keys, int count, int key) {
  int low = 0;
  int high = count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

__global__ void merge_sorted(const int *a, const int *b, int *out, int a_count, int b_count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a_count) out[i + lower_bound(b, b_count, a[i])] = a[i];
  if (i < b_count) out[i + lower_bound(a, a_count, b[i] + 1)] = b[i];
}
