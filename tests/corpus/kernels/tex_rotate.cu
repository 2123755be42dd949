// tex_rotate.cu: an image turned by a quarter.
extern "C" __global__ void tex_rotate(cudaTextureObject_t image, int *out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= height || y >= width) return;
  out[y * height + x] = tex2D<int>(image, width - 1 - y + 0.5f, x + 0.5f);
}
