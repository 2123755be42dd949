// edit_distance.cu: Levenshtein distance of two words, the table's anti-diagonals in turn, three of them kept.
#define MAX_LENGTH 64
__global__ void edit_distance(const char *a, const char *b, int *out, int a_length, int b_length) {
  __shared__ int diagonals[3][MAX_LENGTH + 1];
  int row = threadIdx.x;
  for (int sum = 0; sum <= a_length + b_length; ++sum) {
    int column = sum - row;
    if (row <= a_length && column >= 0 && column <= b_length) {
      int best = row + column;
      if (row > 0 && column > 0) {
        int change = diagonals[(sum + 1) % 3][row - 1] + (a[row - 1] != b[column - 1]);
        int remove = diagonals[(sum + 2) % 3][row - 1] + 1;
        int insert = diagonals[(sum + 2) % 3][row] + 1;
        best = min(change, min(remove, insert));
      }
      diagonals[sum % 3][row] = best;
    }
    __syncthreads();
  }
  if (row == 0) *out = diagonals[(a_length + b_length) % 3][a_length];
}
