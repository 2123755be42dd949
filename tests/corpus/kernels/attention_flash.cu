// attention_flash.cu: attention without a score matrix: tiles of keys pass through shared memory, softmax kept online.
#define WIDTH 16
#define TILE 8
template <bool Causal>
__global__ void attention_flash(const float *q, const float *k, const float *v, float *out, float *tops, float scale,
                                int length) {
  __shared__ float keys[TILE][WIDTH];
  __shared__ float values[TILE][WIDTH];
  int query = blockIdx.x * TILE + threadIdx.x;
  float own[WIDTH];
  float sums[WIDTH];
  for (int d = 0; d < WIDTH; ++d) {
    own[d] = query < length ? q[query * WIDTH + d] : 0.0f;
    sums[d] = 0.0f;
  }
  float top = -1e30f;
  float total = 0.0f;
  for (int first = 0; first < length; first += TILE) {
    int row = first + threadIdx.x;
    for (int d = 0; d < WIDTH; ++d) {
      keys[threadIdx.x][d] = row < length ? k[row * WIDTH + d] : 0.0f;
      values[threadIdx.x][d] = row < length ? v[row * WIDTH + d] : 0.0f;
    }
    __syncthreads();
    for (int j = 0; j < TILE; ++j) {
      int key = first + j;
      if (key < length && (!Causal || key <= query)) {
        float score = 0.0f;
        for (int d = 0; d < WIDTH; ++d) score += own[d] * keys[j][d];
        score *= scale;
        float higher = fmaxf(top, score);
        float shrink = expf(top - higher);
        float weight = expf(score - higher);
        for (int d = 0; d < WIDTH; ++d) sums[d] = sums[d] * shrink + weight * values[j][d];
        total = total * shrink + weight;
        top = higher;
      }
    }
    __syncthreads();
  }
  if (query < length) {
    tops[query] = top;
    for (int d = 0; d < WIDTH; ++d) out[query * WIDTH + d] = sums[d] / total;
  }
}
