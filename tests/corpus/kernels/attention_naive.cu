// attention_naive.cu: causal attention of one head, one block a query, all its scores in shared memory; also their
// tops.
#define WIDTH 16
#define BLOCK 32
__global__ void attention_naive(const float *q, const float *k, const float *v, float *out, float *tops, float scale,
                                int length) {
  extern __shared__ float scores[];
  int query = length - 1 - blockIdx.x;
  for (int key = threadIdx.x; key <= query; key += BLOCK) {
    float score = 0.0f;
    for (int d = 0; d < WIDTH; ++d) score += q[query * WIDTH + d] * k[key * WIDTH + d];
    scores[key] = score * scale;
  }
  __syncthreads();
  float top = scores[0];
  for (int key = 1; key <= query; ++key) top = fmaxf(top, scores[key]);
  if (threadIdx.x == 0) tops[query] = top;
  float sum = 0.0f;
  for (int key = 0; key <= query; ++key) sum += expf(scores[key] - top);
  if (threadIdx.x < WIDTH) {
    float value = 0.0f;
    for (int key = 0; key <= query; ++key) value += expf(scores[key] - top) * v[key * WIDTH + threadIdx.x];
    out[query * WIDTH + threadIdx.x] = value / sum;
  }
}
