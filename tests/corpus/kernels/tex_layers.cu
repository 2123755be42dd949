// tex_layers.cu: the layers of a stack of images, each with a weight, added up.
extern "C" __global__ void tex_layers(cudaTextureObject_t stack, const int *weights, int *out, int width, int height,
                                      int layers) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x >= width) return;
  int sum = 0;
  for (int layer = 0; layer < layers; ++layer) sum += weights[layer] * tex2DLayered<int>(stack, x + 0.5f, y + 0.5f, layer);
  out[y * width + x] = sum;
}
