// lcs.cu: lengths of longest common subsequences of pairs of words, one block a pair, the whole table in shared memory.
#define LENGTH 19
__global__ void lcs(const unsigned char *a, const unsigned char *b, int *out) {
  __shared__ int table[LENGTH + 1][LENGTH + 1];
  int row = threadIdx.x + 1;
  int start = blockIdx.x * LENGTH;
  if (threadIdx.x == 0) {
    for (int k = 0; k <= LENGTH; ++k) table[0][k] = 0;
  }
  table[row][0] = 0;
  for (int step = 0; step < 2 * LENGTH - 1; ++step) {
    int column = step - threadIdx.x + 1;
    if (column >= 1 && column <= LENGTH) {
      int best = max(table[row - 1][column], table[row][column - 1]);
      if (a[start + row - 1] == b[start + column - 1]) best = table[row - 1][column - 1] + 1;
      table[row][column] = best;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = table[LENGTH][LENGTH];
}
