// sobel.cu: edge strength of a grey image, the nearest pixel taken outside its borders.
__device__ int pixel(const unsigned char *image, int x, int y, int width, int height) {
  int column = min(max(x, 0), width - 1);
  int row = min(max(y, 0), height - 1);
  return image[row * width + column];
}

__global__ void sobel(const unsigned char *in, unsigned char *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int horizontal = 0;
  int vertical = 0;
  for (int k = -1; k <= 1; ++k) {
    int weight = 2 - abs(k);
    horizontal += weight * (pixel(in, x + 1, y + k, width, height) - pixel(in, x - 1, y + k, width, height));
    vertical += weight * (pixel(in, x + k, y + 1, width, height) - pixel(in, x + k, y - 1, width, height));
  }
  out[y * width + x] = (unsigned char)min(255, abs(horizontal) + abs(vertical));
}
