// laplace_3d.cu: the seven-point Laplacian inside a volume; a thread walks along z and keeps three planes in registers.
__global__ void laplace_3d(const float *in, float *out, int width, int height, int depth) {
  int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
  int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (x >= width - 1 || y >= height - 1) return;
  int plane = width * height;
  int at = y * width + x;
  float below = in[at];
  float centre = in[at + plane];
  for (int z = 1; z < depth - 1; ++z) {
    at += plane;
    float above = in[at + plane];
    out[at] = in[at - 1] + in[at + 1] + in[at - width] + in[at + width] + below + above - 6.0f * centre;
    below = centre;
    centre = above;
  }
}
