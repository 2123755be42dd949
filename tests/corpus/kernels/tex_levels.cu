// tex_levels.cu: every level of a mipmap at the middle of each of its elements, one level a block.
extern "C" __global__ void tex_levels(cudaTextureObject_t image, float *out, int size) {
  const int level = blockIdx.x, side = size >> level;
  for (int i = threadIdx.x; i < side * side; i += blockDim.x)
    out[level * size * size + i] = tex2DLod<float>(image, (i % side + 0.5f) / side, (i / side + 0.5f) / side, level);
}
