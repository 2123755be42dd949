// tex_grey.cu: colours of four bytes as shades of grey from 0 to 1.
extern "C" __global__ void tex_grey(cudaTextureObject_t image, float *out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float4 colour = tex2D<float4>(image, x + 0.5f, y + 0.5f);
  out[y * width + x] = 0.25f * colour.x + 0.5f * colour.y + 0.25f * colour.z;
}
