// lstm_cell.cu: one step of an LSTM cell from the four gates' sums, states updated in place.
__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__global__ void lstm_cell(const float *gates, float *cell, float *hidden, int batch, int units) {
  int unit = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y;
  if (unit >= units) return;
  const float *own = gates + row * 4 * units;
  float input = sigmoid(own[unit]);
  float forget = sigmoid(own[units + unit]);
  float candidate = tanhf(own[2 * units + unit]);
  float output = sigmoid(own[3 * units + unit]);
  float state = forget * cell[row * units + unit] + input * candidate;
  cell[row * units + unit] = state;
  hidden[row * units + unit] = output * tanhf(state);
}
