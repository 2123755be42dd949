// tex_pool.cu: the greatest of two by two pixels, gathered at once.
extern "C" __global__ void tex_pool(cudaTextureObject_t image, float *out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float4 four = tex2Dgather<float4>(image, 2 * x + 1.0f, 2 * y + 1.0f);
  out[y * width + x] = fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w));
}
