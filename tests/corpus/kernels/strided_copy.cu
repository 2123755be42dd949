// strided_copy.cu: a 2-D grid copies a rectangle out of a pitched image into a dense one.
__global__ void strided_copy(const int *image, int *out, int pitch, int top, int left, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = image[(top + y) * pitch + left + x];
}
