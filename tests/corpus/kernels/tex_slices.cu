// tex_slices.cu: a volume's greatest value along each ray of sight.
extern "C" __global__ void tex_slices(cudaTextureObject_t volume, float *out, int width, int height, int depth) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float most = tex3D<float>(volume, x + 0.5f, y + 0.5f, 0.5f);
  for (int z = 1; z < depth; ++z) most = fmaxf(most, tex3D<float>(volume, x + 0.5f, y + 0.5f, z + 0.5f));
  out[y * width + x] = most;
}
