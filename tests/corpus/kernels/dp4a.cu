// dp4a.cu: dot products of 8-bit integers, four at a time, with rows packed into 32-bit words.
__global__ void dp4a(const int *a, const int *b, int *out, int rows, int words) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    int sum = 0;
    for (int k = 0; k < words; ++k) sum = __dp4a(a[row * words + k], b[k], sum);
    out[row] = sum;
  }
}
