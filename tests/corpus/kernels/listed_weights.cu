// listed_weights.cu: a braced list as an argument, and a pair that is moved on.
struct Pair {
  float low, high;
};

__device__ float weighted(std::initializer_list<float> weights, float x) {
  float sum = 0.0f;
  for (float weight : weights) sum = sum * x + weight;
  return sum;
}
__device__ Pair swapped(Pair &&pair) { return {pair.high, pair.low}; }

__global__ void listed_weights(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Pair pair = {weighted({1.0f, 2.0f, 3.0f}, x[i]), weighted({0.5f, 4.0f}, x[i])};
  Pair turned = swapped(std::move(pair));
  out[2 * i] = turned.low;
  out[2 * i + 1] = turned.high;
}
