// tex_sky.cu: what is seen of a sky of six faces into given directions.
extern "C" __global__ void tex_sky(cudaTextureObject_t sky, const float *directions, float *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = texCubemap<float>(sky, directions[3 * i], directions[3 * i + 1], directions[3 * i + 2]);
}
