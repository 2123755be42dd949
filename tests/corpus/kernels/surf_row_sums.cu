// surf_row_sums.cu: running sums of each row of a surface, in place: half a summed-area table.
extern "C" __global__ void surf_row_sums(cudaSurfaceObject_t image, int width, int height) {
  const int y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= height) return;
  int sum = 0;
  for (int x = 0; x < width; ++x) {
    sum += surf2Dread<int>(image, 4 * x, y);
    surf2Dwrite<int>(sum, image, 4 * x, y);
  }
}
