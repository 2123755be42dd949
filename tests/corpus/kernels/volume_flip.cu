// volume_flip.cu: a 3-D grid mirrors a volume along its three axes.
__global__ void volume_flip(const int *in, int *out, int width, int height, int depth) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < width && y < height && z < depth) {
    int from = (z * height + y) * width + x;
    int to = ((depth - 1 - z) * height + height - 1 - y) * width + width - 1 - x;
    out[to] = in[from];
  }
}
