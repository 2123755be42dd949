// tex_torus.cu: an image moved on a torus, by coordinates that wrap around.
extern "C" __global__ void tex_torus(cudaTextureObject_t image, unsigned short *out, int size, int dx, int dy) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= size || y >= size) return;
  out[y * size + x] = tex2D<unsigned short>(image, (x + dx + 0.5f) / size, (y + dy + 0.5f) / size);
}
