// argmax.cu: where each row has its greatest element, the first one among equals.
__global__ void argmax(const float *in, int *out, int columns) {
  __shared__ float values[64];
  __shared__ int places[64];
  int row = blockIdx.x;
  float best = -1e30f;
  int place = columns;
  for (int k = threadIdx.x; k < columns; k += 64) {
    float value = in[row * columns + k];
    if (value > best) {
      best = value;
      place = k;
    }
  }
  values[threadIdx.x] = best;
  places[threadIdx.x] = place;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      float other = values[threadIdx.x + half];
      int other_place = places[threadIdx.x + half];
      bool better = other > values[threadIdx.x];
      bool equal = other == values[threadIdx.x];
      if (better || (equal && other_place < places[threadIdx.x])) {
        values[threadIdx.x] = other;
        places[threadIdx.x] = other_place;
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[row] = places[0];
}
