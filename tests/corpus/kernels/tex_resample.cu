// tex_resample.cu: a volume of half the spacing along each axis.
extern "C" __global__ void tex_resample(cudaTextureObject_t volume, float *out, int width, int height, int depth) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
  if (x >= width) return;
  out[(z * height + y) * width + x] = tex3D<float>(volume, 0.5f * x + 0.5f, 0.5f * y + 0.5f, 0.5f * z + 0.5f);
}
