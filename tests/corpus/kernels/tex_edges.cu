// tex_edges.cu: Sobel's gradient across an image that is mirrored at its edges.
__device__ int at(cudaTextureObject_t image, int x, int y, int size) {
  return tex2D<short>(image, (x + 0.5f) / size, (y + 0.5f) / size);
}
extern "C" __global__ void tex_edges(cudaTextureObject_t image, int *out, int size) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= size || y >= size) return;
  int sum = 0;
  for (int d = -1; d <= 1; ++d) sum += (2 - abs(d)) * (at(image, x + 1, y + d, size) - at(image, x - 1, y + d, size));
  out[y * size + x] = sum;
}
