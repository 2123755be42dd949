// string_search.cu: every place where a pattern begins in a text, marked, and their number.
__global__ void string_search(const char *text, const char *pattern, unsigned char *found, int *count, int length,
                              int width) {
  extern __shared__ char word[];
  for (int k = threadIdx.x; k < width; k += blockDim.x) word[k] = pattern[k];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= length) return;
  bool equal = i + width <= length;
  for (int k = 0; equal && k < width; ++k) equal = text[i + k] == word[k];
  found[i] = equal;
  if (equal) atomicAdd(count, 1);
}
