// routing.cu: which experts a row goes to and with what weights; the order in which experts take the rows.
#include "linear.cuh"
#include "overlap.cuh"

namespace pk {

constexpr int kMaxExperts = 1024;

enum Score { kSoftmax, kSoftmaxOfChosen, kSigmoid };

struct RouteCall {
  long long k;  // elements of a row
  int experts, chosen, groups, groups_chosen, score, normalised, has_bias, has_correction;
  float scale;
};

__device__ __forceinline__ float minus_infinity() { return __int_as_float(static_cast<int>(0xff800000u)); }

// The largest of a warp's candidates, of equal ones that with the lowest number; known to all lanes.
__device__ __forceinline__ int best_of_warp(float value, int number) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, lanes);
    const int of = __shfl_xor_sync(0xffffffffu, number, lanes);
    if (other > value || (other == value && of < number)) value = other, number = of;
  }
  return number;
}

// The best of `count` values that are not taken yet; a NaN is as small as can be.
__device__ __forceinline__ int best(const float *values, const bool *taken, int count) {
  float value = 0.0f;
  int number = count;
  for (int i = threadIdx.x % 32; i < count; i += 32) {
    if (taken[i]) continue;
    const float own = values[i] >= minus_infinity() ? values[i] : minus_infinity();
    if (number == count || own > value) value = own, number = i;
  }
  if (number == count) value = minus_infinity(), number = kMaxExperts + count;
  return best_of_warp(value, number);
}

// The group's worth: its two best values added up.
__device__ __forceinline__ float worth(const float *values, int count) {
  float first = minus_infinity(), second = minus_infinity();
  for (int i = 0; i < count; ++i) {
    const float own = values[i] >= minus_infinity() ? values[i] : minus_infinity();
    if (own > first) {
      second = first, first = own;
    } else if (own > second) {
      second = own;
    }
  }
  return count > 1 ? first + second : first;
}

// Logits of rows, blocks in y; a warp for each expert. They are summed as products of a few rows are (linear.cu), so
// that they depend on the row alone. w: (experts, k).
template <class T>
__global__ void __launch_bounds__(kThreads)
    router_logits(const T *x, const T *w, const T *bias, float *logits, const __grid_constant__ RouteCall call) {
  constexpr int kCount = per_load<T>();
  const long long row = blockIdx.y, pieces = call.k / kCount;
  const int lane = threadIdx.x % 32, e = blockIdx.x * kWarps + threadIdx.x / 32;
  let_next_begin();
  await_previous();
  if (e >= call.experts) return;
  float sum = 0.0f;
#pragma unroll 8
  for (long long piece = lane; piece < pieces; piece += 32) {
    float a[kCount], b[kCount];
    widen_pack(load_pack<kCount>(w + e * call.k + piece * kCount), a);
    widen_pack(load_pack<kCount>(x + row * call.k + piece * kCount), b);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum = fmaf(a[i], b[i], sum);
  }
  sum = over_warp(sum);
  if (lane == 0) logits[row * call.experts + e] = call.has_bias ? sum + widen(bias[e]) : sum;
}

// A warp for each row: its experts stand best first, of equal ones the lower number.
__global__ void __launch_bounds__(32) choose_experts(const float *logits, const float *correction, int *experts,
                                                     float *weights, const __grid_constant__ RouteCall call) {
  __shared__ float score[kMaxExperts], choice[kMaxExperts], group_worth[kMaxExperts];
  __shared__ bool taken[kMaxExperts], group_taken[kMaxExperts];
  const long long row = blockIdx.x;
  const int lane = threadIdx.x;
  let_next_begin();
  await_previous();
#pragma unroll 4
  for (int e = lane; e < call.experts; e += 32) score[e] = logits[row * call.experts + e];
  __syncwarp();
  if (call.score == kSoftmax) {
    float largest = minus_infinity(), sum = 0.0f;
    for (int e = lane; e < call.experts; e += 32) largest = score[e] > largest ? score[e] : largest;
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, largest, lanes);
      largest = other > largest ? other : largest;
    }
    for (int e = lane; e < call.experts; e += 32) sum += score[e] = expf(score[e] - largest);
    sum = over_warp(sum);
    for (int e = lane; e < call.experts; e += 32) score[e] /= sum;
  }
  // Sigmoids of large logits are all 1; where they alone decide, the logits do.
  const bool by_logit = call.score == kSigmoid && !call.has_correction && call.groups == 1;
  for (int e = lane; e < call.experts; e += 32) {
    const float logit = score[e];
    if (call.score == kSigmoid) score[e] = 1.0f / (1.0f + expf(-logit));
    choice[e] = by_logit ? logit : call.has_correction ? score[e] + correction[e] : score[e];
    taken[e] = false;
  }
  __syncwarp();
  if (call.groups > 1) {
    const int size = call.experts / call.groups;
    for (int g = lane; g < call.groups; g += 32) {
      group_worth[g] = worth(choice + g * size, size);
      group_taken[g] = false;
    }
    __syncwarp();
    for (int i = 0; i < call.groups_chosen; ++i) {
      const int g = best(group_worth, group_taken, call.groups);
      __syncwarp();
      if (lane == 0) group_taken[g] = true;
      __syncwarp();
    }
    for (int e = lane; e < call.experts; e += 32) taken[e] = !group_taken[e / size];
    __syncwarp();
  }
  experts += row * call.chosen, weights += row * call.chosen;
  float first = 0.0f, sum = 0.0f;
  for (int i = 0; i < call.chosen; ++i) {
    const int e = best(choice, taken, call.experts);
    float value = score[e];
    if (call.score == kSoftmaxOfChosen) {  // the first is the largest
      if (i == 0) first = value;
      value = expf(value - first);
    }
    sum += value;
    __syncwarp();
    if (lane == 0) taken[e] = true, experts[i] = e, weights[i] = value;
    __syncwarp();
  }
  const bool divides = call.normalised || call.score == kSoftmaxOfChosen;
  if (lane == 0) {
    for (int i = 0; i < call.chosen; ++i) weights[i] = (divides ? weights[i] / sum : weights[i]) * call.scale;
  }
}

// A block for each expert: how many of the `count` choices are of it, and where each of them stands, in the order of
// rows, behind those of the experts before it. No two blocks write the same place.
__global__ void __launch_bounds__(kThreads)
    arrange(const int *experts, int *counts, int *sources, int *places, const __grid_constant__ int count) {
  __shared__ int below[kWarps], own[kWarps];
  const int expert = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  let_next_begin();
  await_previous();
  int lower = 0, equal = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    lower += experts[i] < expert;
    equal += experts[i] == expert;
  }
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    lower += __shfl_xor_sync(0xffffffffu, lower, lanes);
    equal += __shfl_xor_sync(0xffffffffu, equal, lanes);
  }
  if (lane == 0) below[warp] = lower, own[warp] = equal;
  __syncthreads();
  int next = 0, all = 0;
  for (int i = 0; i < kWarps; ++i) next += below[i], all += own[i];
  if (threadIdx.x == 0) counts[expert] = all;
  if (all == 0) return;
  for (int begin = 0; begin < count; begin += kThreads) {
    const int i = begin + static_cast<int>(threadIdx.x);
    const bool mine = i < count && experts[i] == expert;
    const unsigned votes = __ballot_sync(0xffffffffu, mine);
    __syncthreads();
    if (lane == 0) own[warp] = __popc(votes);
    __syncthreads();
    int place = next + __popc(votes & ((1u << lane) - 1u));
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) place += own[w];
      next += own[w];
    }
    if (mine) sources[place] = i, places[i] = place;
  }
}

}  // namespace pk
