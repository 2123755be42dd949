// bilateral.cu: an edge-keeping blur, weighted by distance and by difference of brightness.
__global__ void bilateral(const float *in, float *out, float spread, float contrast, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float centre = in[y * width + x];
  float sum = 0.0f;
  float weights = 0.0f;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) {
      int column = x + dx;
      int row = y + dy;
      if (column >= 0 && row >= 0 && column < width && row < height) {
        float value = in[row * width + column];
        float difference = value - centre;
        float weight = expf(-(dx * dx + dy * dy) * spread - difference * difference * contrast);
        sum += weight * value;
        weights += weight;
      }
    }
  }
  out[y * width + x] = sum / weights;
}
