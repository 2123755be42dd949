// choice.cu: Whisper's next token of each row of logits, the most probable one that its rules allow, and the log of its
// probability. A block a row; sums run in a fixed tree, so that a row has the same bits whatever is chosen with it.
#include "numeric.cuh"

namespace pk {

struct Choosing {
  long long vocab;
};

// What is known of one row: where it is, the tokens that may come, [text, text_end) and [time, time_end), whether times
// that are together more probable than any text leave no text, and whether it is the first token.
struct Limits {
  int row, text, text_end, time, time_end, either, first;
};

constexpr int kThreads = 256;
constexpr int kNone = 0x7fffffff;

struct Best {
  float value;
  int token;
};

__device__ __forceinline__ Best better(Best a, Best b) {
  return b.value > a.value || (b.value == a.value && b.token < a.token) ? b : a;
}

// 0 for text, 1 for a time, -1 for what may not come. mask: 1 for never, 2 for not first.
__device__ __forceinline__ int kind_of(int token, const Limits &limits, const unsigned char *mask) {
  const int masked = mask[token];
  if (masked == 1 || (masked == 2 && limits.first)) return -1;
  if (token >= limits.text && token < limits.text_end) return 0;
  return token >= limits.time && token < limits.time_end ? 1 : -1;
}

template <class V, class Both>
__device__ __forceinline__ V over_block(V value, V *shared, Both both) {
  __syncthreads();
  shared[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = both(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  return shared[0];
}

__global__ void __launch_bounds__(256) choose(const float *logits, const unsigned char *mask, const int *limits,
                                              int *tokens, float *logs, const __grid_constant__ Choosing p) {
  __shared__ Best bests[kThreads];
  __shared__ double sums[kThreads];
  const int *bounds = limits + 7 * static_cast<long long>(blockIdx.x);
  const Limits own = {bounds[0], bounds[1], bounds[2], bounds[3], bounds[4], bounds[5], bounds[6]};
  const float *values = logits + own.row * p.vocab;
  const float infinity = __int_as_float(0x7f800000);
  Best best[2] = {{-infinity, kNone}, {-infinity, kNone}};
  for (int token = threadIdx.x; token < p.vocab; token += kThreads) {
    const int kind = kind_of(token, own, mask);
    if (kind >= 0) best[kind] = better(best[kind], {values[token], token});  // never a NaN
  }
  for (int kind = 0; kind < 2; ++kind) best[kind] = over_block(best[kind], bests, better);
  const float largest = better(best[0], best[1]).value;
  double sum[2] = {};
  for (int token = threadIdx.x; token < p.vocab; token += kThreads) {
    const int kind = kind_of(token, own, mask);
    const float value = values[token];
    if (kind >= 0 && value > -infinity) sum[kind] += static_cast<double>(::expf(value - largest));
  }
  const auto add = [](double a, double b) { return a + b; };
  for (int kind = 0; kind < 2; ++kind) sum[kind] = over_block(sum[kind], sums, add);
  if (threadIdx.x != 0) return;
  const float total = static_cast<float>(largest + ::log(sum[0] + sum[1]));
  const double times = largest + ::log(sum[1]);
  const bool alone = own.either != 0 && times - total > static_cast<double>(best[0].value - total);
  const Best winner = alone ? best[1] : better(best[0], best[1]);
  tokens[blockIdx.x] = largest > -infinity ? winner.token : -1;
  logs[blockIdx.x] = largest > -infinity ? winner.value - (alone ? static_cast<float>(times) : total) : -infinity;
}

}  // namespace pk
