// softmax_online.cu: softmax in one pass over the row: each lane keeps a maximum and a rescaled sum, then a warp
// merges.
__global__ void softmax_online(const float *in, float *out, float *tops, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float top = -1e30f;
  float sum = 0.0f;
  for (int k = lane; k < columns; k += 32) {
    float value = in[row * columns + k];
    float higher = fmaxf(top, value);
    sum = sum * expf(top - higher) + expf(value - higher);
    top = higher;
  }
  for (int delta = 16; delta > 0; delta /= 2) {
    float other_top = __shfl_xor_sync(0xffffffffu, top, delta);
    float other_sum = __shfl_xor_sync(0xffffffffu, sum, delta);
    float higher = fmaxf(top, other_top);
    sum = sum * expf(top - higher) + other_sum * expf(other_top - higher);
    top = higher;
  }
  if (lane == 0) tops[row] = top;
  for (int k = lane; k < columns; k += 32) out[row * columns + k] = expf(in[row * columns + k] - top) / sum;
}
