// sampling.cu: one token of each row of logits, a block for a row (sampling.cuh).
#include "sampling.cuh"

namespace pk {

struct SamplingCall {
  long long vocab, start, row_step, step;  // of the logits, elements
  unsigned long long seed, position;
  unsigned long long top_p;  // times 2^64, 0 for all
  long long top_k;           // 0 for all
  int seeded_rows;           // each row has a seed of its own
  int positioned_rows;       // each row has a position of its own
  int has_draws;           // random numbers of [0, 1) are given, one a row
  int has_min_p;
  float temperature;  // 0: the first of the largest logits
  float log_min_p;
};

// token[row] for each block. seeds, positions and draws are read only where the call says so.
template <class T>
__global__ void __launch_bounds__(sampling::kThreads)
    sample_rows(const T *logits, const unsigned long long *seeds, const long long *positions, const float *draws,
                int *token, const __grid_constant__ SamplingCall call) {
  using namespace sampling;
  __shared__ u64 bins[kBins];
  __shared__ u64 sums[kWarps];
  const long long number = blockIdx.x;
  const long long vocab = call.vocab;
  Row<T> row{logits + call.start + number * call.row_step, call.step, call.temperature, 0.0f};
  const Settings settings{call.top_p, call.top_k, call.temperature, call.log_min_p, call.has_min_p != 0};
  const auto bits = [&]() -> u64 {
    if (call.has_draws) {
      const float draw = draws[number];
      return draw > 0.0f ? static_cast<u64>(min(draw, 0.99999994f) * 18446744073709551616.0f) : 0;
    }
    const u64 seed = call.seeded_rows ? seeds[number] : call.seed;
    const u64 position = call.positioned_rows ? static_cast<u64>(positions[number]) : call.position;
    return random_bits(seed, position, call.seeded_rows ? 0 : number);
  };
  const long long chosen = choose(row, vocab, settings, bits, bins, sums);
  if (threadIdx.x == 0) token[number] = static_cast<int>(chosen);
}

}  // namespace pk
