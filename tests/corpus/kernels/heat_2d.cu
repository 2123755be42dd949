// heat_2d.cu: one explicit step of the heat equation on a plate with fixed borders.
__global__ void heat_2d(const float *now, float *next, float rate, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int at = y * width + x;
  float centre = now[at];
  if (x > 0 && y > 0 && x < width - 1 && y < height - 1) {
    float around = now[at - 1] + now[at + 1] + now[at - width] + now[at + width];
    centre += rate * (around - 4.0f * centre);
  }
  next[at] = centre;
}
