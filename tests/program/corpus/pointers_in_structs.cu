// A structure with pointers is given by value, and rows are found by an array of pointers on the device.
// output: 3 12
#include <cstdio>

struct Matrix {
  int width, height;
  int *values;
};

__global__ void sum(Matrix matrix, int *out) {
  int total = 0;
  for (int i = 0; i < matrix.width * matrix.height; ++i) total += matrix.values[i];
  *out = total;
}
__global__ void pick(int **rows, int row, int column, int *out) { *out = rows[row][column]; }

int main() {
  const int host[6] = {0, 1, 2, 2, 3, 4};
  Matrix matrix = {3, 2, nullptr};
  int *out, **rows, results[2];
  cudaMalloc(&matrix.values, sizeof host);
  cudaMalloc(&out, sizeof(int));
  cudaMalloc(&rows, 2 * sizeof(int *));
  cudaMemcpy(matrix.values, host, sizeof host, cudaMemcpyHostToDevice);
  int *const starts[] = {matrix.values, matrix.values + 3};
  cudaMemcpy(rows, starts, sizeof starts, cudaMemcpyHostToDevice);
  pick<<<1, 1>>>(rows, 1, 1, out);
  cudaMemcpy(&results[0], out, sizeof(int), cudaMemcpyDeviceToHost);
  sum<<<1, 1>>>(matrix, out);
  cudaMemcpy(&results[1], out, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("%d %d\n", results[0], results[1]);
  cudaFree(matrix.values);
  cudaFree(out);
  cudaFree(rows);
  return 0;
}
