// tex_zoom.cu: an image enlarged, each pixel between its neighbours.
extern "C" __global__ void tex_zoom(cudaTextureObject_t image, float *out, int width, int height, float scale) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  out[y * width + x] = tex2D<float>(image, (x + 0.5f) / scale, (y + 0.5f) / scale);
}
