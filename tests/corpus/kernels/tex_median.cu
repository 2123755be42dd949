// tex_median.cu: the median of each pixel and its eight neighbours, those outside as the nearest inside.
extern "C" __global__ void tex_median(cudaTextureObject_t image, unsigned char *out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  unsigned char values[9];
  for (int k = 0; k < 9; ++k) values[k] = tex2D<unsigned char>(image, x + k % 3 - 1, y + k / 3 - 1);
  for (int done = 0; done < 5; ++done)
    for (int k = 8; k > done; --k) {
      const unsigned char low = min(values[k - 1], values[k]), high = max(values[k - 1], values[k]);
      values[k - 1] = low;
      values[k] = high;
    }
  out[y * width + x] = values[4];
}
