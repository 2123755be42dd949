// convolution_2d.cu: a layer of 3 x 3 filters over several channels, zero padding, one output channel for each z.
__global__ void convolution_2d(const float *in, const float *filters, float *out, int channels, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int output = blockIdx.z;
  if (x >= width || y >= height) return;
  float sum = 0.0f;
  for (int channel = 0; channel < channels; ++channel) {
    for (int k = 0; k < 9; ++k) {
      int column = x + k % 3 - 1;
      int row = y + k / 3 - 1;
      if (column >= 0 && row >= 0 && column < width && row < height) {
        sum += filters[(output * channels + channel) * 9 + k] * in[(channel * height + row) * width + column];
      }
    }
  }
  out[(output * height + y) * width + x] = sum;
}
