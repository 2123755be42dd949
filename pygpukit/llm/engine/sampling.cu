// sampling.cu: the next token of each sequence of a step, and what is told about it. Requests lie in device memory, so
// that a captured graph serves any of them.
#include "overlap.cuh"
#include "sampling.cuh"

namespace pk {

using sampling::u64;

constexpr int kInPrompt = 1 << 30;  // in a count: the prompt has the token
constexpr int kMaxReported = 21;

struct Request {
  u64 seed, number, top_p, top_k;
  float temperature, log_min_p, repetition, presence, frequency, unused;
  int pad[2];
};

struct ChooseCall {
  long long vocab;
  int counted, reported;  // whether counts are kept; how many of the most probable tokens are told, 0 for no figures
  int bests, unused;  // how many blocks told the largest of their logits, 0 where none did
};

// Penalties and bias of one row of logits, a thread for each token. masks: of each row a bit for each token, 0 where it
// may not be chosen.
__global__ void __launch_bounds__(256) adjust(float *logits, const Request *requests, const int *counts,
                                              const float *bias, const unsigned *masks,
                                              const __grid_constant__ ChooseCall call) {
  const long long vocab = call.vocab, i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= vocab) return;
  const Request &request = requests[blockIdx.y];
  const long long at = blockIdx.y * vocab + i;
  const int count = counts[at];
  const float often = static_cast<float>(count & (kInPrompt - 1));
  float value = logits[at];
  if (count != 0) value = value > 0.0f ? __fdiv_rn(value, request.repetition) : __fmul_rn(value, request.repetition);
  value = __fadd_rn(value, often > 0.0f ? -request.presence : 0.0f);
  value = __fadd_rn(value, -__fmul_rn(request.frequency, often));
  const unsigned allowed = masks[blockIdx.y * ((vocab + 31) / 32) + i / 32] >> (i % 32) & 1;
  logits[at] = allowed ? __fadd_rn(value, bias[at]) : -__uint_as_float(0x7f800000u);
}

// The largest of some numbers, in all threads of a block of sampling::kThreads.
__device__ __forceinline__ u64 largest_of(const u64 *numbers, int count, u64 (&bests)[sampling::kWarps]) {
  u64 best = 0;
  for (int i = threadIdx.x; i < count; i += sampling::kThreads) best = max(best, numbers[i]);
  for (int lanes = 16; lanes > 0; lanes /= 2) best = max(best, __shfl_xor_sync(0xffffffffu, best, lanes));
  if (threadIdx.x % 32 == 0) bests[threadIdx.x / 32] = best;
  __syncthreads();
  for (int warp = 0; warp < sampling::kWarps; ++warp) best = max(best, bests[warp]);
  return best;
}

// A block for a row: the token after it, its place, and how often the answer has it. bests: of one row's logits as they
// are, the largest that each block of the product found, which is all that a greedy choice asks for. said: on the host,
// of each row the tokens of an even and of an odd place.
__global__ void __launch_bounds__(sampling::kThreads)
    choose_tokens(const float *logits, const Request *requests, int *tokens, int *positions, int *counts,
                  const u64 *bests, int *said, const __grid_constant__ ChooseCall call) {
  using namespace sampling;
  __shared__ u64 bins[kBins];
  __shared__ u64 sums[kWarps];
  await_previous();
  const long long number = blockIdx.x;
  const Request &request = requests[number];
  const int position = positions[number] + 1;
  Row<float> row{logits + number * call.vocab, 1, request.temperature, 0.0f};
  const Settings settings{request.top_p, static_cast<long long>(request.top_k), request.temperature, request.log_min_p,
                          request.log_min_p > -__uint_as_float(0x7f800000u)};
  const auto bits = [&]() -> u64 { return random_bits(request.seed, static_cast<u64>(position), request.number); };
  const long long chosen = call.bests != 0 && request.temperature == 0.0f
                               ? token_of(largest_of(bests, call.bests, sums))
                               : choose(row, call.vocab, settings, bits, bins, sums);
  __syncthreads();
  if (threadIdx.x != 0) return;
  tokens[number] = static_cast<int>(chosen);
  positions[number] = position;
  said[(position & 1) * gridDim.x + number] = static_cast<int>(chosen);
  if (call.counted) counts[number * call.vocab + chosen] += 1;
}

// A block for a row. figures: logprob and margin, kMaxReported tokens, and their logprobs.
__global__ void __launch_bounds__(sampling::kThreads)
    tell(const float *logits, const int *tokens, float *figures, const __grid_constant__ ChooseCall call) {
  using namespace sampling;
  __shared__ u64 bests[kWarps];
  __shared__ double totals[kWarps];
  const long long number = blockIdx.x;
  const Row<float> row{logits + number * call.vocab, 1, 0.0f, 0.0f};
  float *out = figures + number * (2 + 2 * kMaxReported);
  float largest = 0.0f, log_total = 0.0f;
  u64 before = ~0ULL;
  for (int place = 0; place < call.reported && place < call.vocab; ++place) {
    u64 best = 0;
    for (long long i = threadIdx.x; i < call.vocab; i += kThreads) {
      const u64 own = ordered(row.logit(i), i);
      if (own < before && own > best) best = own;
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      const u64 other = __shfl_xor_sync(0xffffffffu, best, lanes);
      best = other > best ? other : best;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) bests[threadIdx.x / 32] = best;
    __syncthreads();
    for (int warp = 0; warp < kWarps; ++warp) best = bests[warp] > best ? bests[warp] : best;
    before = best;
    const float logit = value_of(static_cast<unsigned>(best >> 32));
    if (place == 0) {
      largest = logit;
      double sum = 0.0;
      for (long long i = threadIdx.x; i < call.vocab; i += kThreads)
        sum += static_cast<double>(expf(row.logit(i) - largest));
      for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
      if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = sum;
      __syncthreads();
      sum = 0.0;
      for (int warp = 0; warp < kWarps; ++warp) sum += totals[warp];
      log_total = largest + static_cast<float>(log(sum));
    }
    if (threadIdx.x != 0) continue;
    if (place == 1) out[1] = largest - logit;
    out[2 + place] = __int_as_float(static_cast<int>(token_of(best)));
    out[2 + kMaxReported + place] = logit - log_total;
  }
  if (threadIdx.x == 0) {
    out[0] = row.logit(tokens[number]) - log_total;
    if (call.vocab == 1) out[1] = __uint_as_float(0x7f800000u);
  }
}

}  // namespace pk
