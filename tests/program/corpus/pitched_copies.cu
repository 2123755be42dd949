// Rows with a pitch: cudaMallocPitch, cudaMemcpy2D and cudaMemset2D.
// output: pitch is a multiple of 32: yes
// output: 0 1 2 3 4 7 7
// output: 5 6 7 8 9 7 7
// output: 10 11 12 13 14 7 7
#include <cstdio>

__global__ void number(int *memory, size_t pitch, int width, int height) {
  const int x = threadIdx.x, y = threadIdx.y;
  if (x >= width || y >= height) return;
  int *row = reinterpret_cast<int *>(reinterpret_cast<char *>(memory) + y * pitch);
  row[x] = y * width + x;
}

int main() {
  const int width = 5, height = 3, wide = 7;
  int *device, host[height][wide];
  size_t pitch = 0;
  cudaMallocPitch(&device, &pitch, width * sizeof(int), height);
  std::printf("pitch is a multiple of 32: %s\n", pitch % 32 == 0 && pitch >= width * sizeof(int) ? "yes" : "no");
  cudaMemset2D(device, pitch, 0, width * sizeof(int), height);
  number<<<1, dim3(8, 4)>>>(device, pitch, width, height);
  for (auto &row : host)
    for (int &value : row) value = 7;
  cudaMemcpy2D(host, sizeof host[0], device, pitch, width * sizeof(int), height, cudaMemcpyDeviceToHost);
  for (auto &row : host) {
    for (int x = 0; x < wide; ++x) std::printf(x ? " %d" : "%d", row[x]);
    std::printf("\n");
  }
  cudaFree(device);
  return 0;
}
