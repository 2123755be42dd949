// tex_box.cu: sums of three by three pixels, nothing counting outside the image.
extern "C" __global__ void tex_box(cudaTextureObject_t image, int *out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int sum = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) sum += tex2D<unsigned char>(image, x + dx + 0.5f, y + dy + 0.5f);
  out[y * width + x] = sum;
}
