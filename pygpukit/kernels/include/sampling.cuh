// sampling.cuh: the choice of one token of a row of logits by a block of threads, without sorting.
//
// Tokens are ordered by falling logit, then by rising index. min-p, top-k and top-p each keep a beginning of that order:
// all tokens whose key is above a threshold, and the first few of those that are equal to it. Probabilities are integers
// (philox.cuh: exp_units), so sums are exact in any order and the token does not depend on the shape of the launch.
#pragma once
#include "logits.cuh"
#include "philox.cuh"

namespace pk {
namespace sampling {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr int kBins = 2048;
constexpr u64 kDomain = 0x73616d706c696e67ULL;  // apart from arrays of random numbers with the same seed

template <class T>
struct Row {
  const T *logits;
  long long step;
  float temperature, largest;

  // A logit that is no number is never chosen.
  __device__ __forceinline__ float logit(long long i) const {
    const float value = widen(logits[i * step]);
    const float number = value == value ? value : -__uint_as_float(0x7f800000u);
    return temperature == 0.0f ? number : __fdiv_rn(number, temperature);
  }
  __device__ __forceinline__ unsigned key(long long i) const { return key_of(logit(i)); }
  __device__ __forceinline__ u64 weight(float z) const {
    return z == largest ? 1ULL << 40 : fixed::exp_units(__fadd_rn(z, -largest));
  }
};

struct Located {
  long long index;
  u64 rest;  // of the target, without all before index
};

// The sum of value(begin .. end - 1), known to all threads.
template <class F>
__device__ u64 total(F value, long long begin, long long end, u64 (&sums)[kWarps]) {
  u64 sum = 0;
  for (long long i = begin + threadIdx.x; i < end; i += kThreads) sum += value(i);
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += sums[warp];
  return sum;
}

// The first index where the sum of value(begin .. index) is above target, which is below the sum of all.
template <class F>
__device__ Located locate(F value, long long begin, long long end, u64 target, u64 (&sums)[kWarps]) {
  while (end - begin > 1) {
    const long long part = (end - begin + kWarps - 1) / kWarps;
    const long long first = begin + threadIdx.x / 32 * part;
    const long long last = first + part < end ? first + part : end;
    u64 sum = 0;
    for (long long i = first + threadIdx.x % 32; i < last; i += 32) sum += value(i);
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    int chosen = 0;
    while (chosen < kWarps - 1 && target >= sums[chosen]) target -= sums[chosen++];
    begin += chosen * part;
    end = begin + part < end ? begin + part : end;
  }
  return {begin, target};
}

// In the order of falling keys: the key at which the sum of value(i, key) goes above target. 11, 11 and 10 bits of the
// key at a time; integer additions, so their order does not matter.
template <class T, class F>
__device__ Located select(const Row<T> &row, long long vocab, F value, u64 target, u64 (&bins)[kBins],
                        u64 (&sums)[kWarps]) {
  unsigned prefix = 0, known = 0;
  for (int shift = 21; shift >= 0; shift = shift > 10 ? shift - 11 : shift - 10) {
    const unsigned count = shift > 0 ? kBins : kBins / 2;
    __syncthreads();
    for (int i = threadIdx.x; i < kBins; i += kThreads) bins[i] = 0;
    __syncthreads();
    for (long long i = threadIdx.x; i < vocab; i += kThreads) {
      const float z = row.logit(i);
      const unsigned key = key_of(z);
      if ((key & known) != prefix) continue;
      const u64 own = value(z);
      if (own != 0) atomicAdd(&bins[key >> shift & (count - 1)], own);
    }
    __syncthreads();
    const Located located = locate([&](long long i) { return bins[count - 1 - i]; }, 0, count, target, sums);
    prefix |= (count - 1 - static_cast<unsigned>(located.index)) << shift;
    known |= (count - 1) << shift;
    target = located.rest;
  }
  return {prefix, target};
}

// The random number of a draw, times 2^64.
__device__ __forceinline__ u64 random_bits(u64 seed, u64 position, u64 call) {
  const Words words = philox(seed ^ kDomain, position, call);
  return join(words.w[0], words.w[1]);
}

// How a token is chosen. top_p: times 2^64, 0 for all; top_k: 0 for all; temperature: 0 for the first of the largest.
struct Settings {
  u64 top_p;
  long long top_k;
  float temperature, log_min_p;
  bool has_min_p;
};

// The token of a row, the same in all threads. bits(): the random number times 2^64, asked for where it is needed.
template <class T, class F>
__device__ long long choose(Row<T> &row, long long vocab, const Settings &call, F bits, u64 (&bins)[kBins],
                            u64 (&sums)[kWarps]) {
  unsigned top = 0;
  for (long long i = threadIdx.x; i < vocab; i += kThreads) top = max(top, row.key(i));
  for (int lanes = 16; lanes > 0; lanes /= 2) top = max(top, __shfl_xor_sync(0xffffffffu, top, lanes));
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = top;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) top = max(top, static_cast<unsigned>(sums[warp]));
  __syncthreads();
  row.largest = value_of(top);
  if (call.temperature == 0.0f) {
    const Located first = locate([&](long long i) { return u64(row.key(i) == top); }, 0, vocab, 0, sums);
    return first.index;
  }

  // Kept: keys above `threshold`, and the first `ties` of those equal to it.
  unsigned threshold = call.has_min_p ? key_of(__fadd_rn(row.largest, call.log_min_p)) - 1 : 0;
  u64 ties = 0;
  if (call.top_k != 0 && call.top_k < vocab) {
    const u64 k = static_cast<u64>(call.top_k);
    if (total([&](long long i) { return u64(row.key(i) > threshold); }, 0, vocab, sums) > k) {
      const Located last = select(row, vocab, [](float) { return u64(1); }, k - 1, bins, sums);
      threshold = static_cast<unsigned>(last.index);
      ties = last.rest + 1;
    }
  }
  const auto above_threshold = [&](long long i) {
    const float z = row.logit(i);
    return key_of(z) > threshold ? row.weight(z) : u64(0);
  };
  u64 above = total(above_threshold, 0, vocab, sums);
  u64 tied = row.weight(value_of(threshold));  // read only if there are ties
  if (call.top_p != 0) {
    const u64 sum = above + (ties != 0 ? ties * tied : 0);
    const u64 target = __umul64hi(sum, call.top_p) - (sum * call.top_p == 0 ? 1 : 0);
    const Located last = select(row, vocab, [&](float z) { return row.weight(z); }, target, bins, sums);
    threshold = static_cast<unsigned>(last.index);
    tied = row.weight(value_of(threshold));
    ties = last.rest / tied + 1;
    above = target - last.rest;
  }

  const u64 point = __umul64hi(bits(), above + (ties != 0 ? ties * tied : 0));
  const Located chosen = point < above
                           ? locate(above_threshold, 0, vocab, point, sums)
                           : locate([&](long long i) { return u64(row.key(i) == threshold); }, 0, vocab,
                                    (point - above) / tied, sums);
  return chosen.index;
}

}  // namespace sampling
}  // namespace pk
