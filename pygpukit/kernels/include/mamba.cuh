// mamba.cuh: what the kernels of a Mamba-2 layer share: its sizes, and the rows that a block has.
//
// Positions are cut into chunks at multiples of kChunk. The state where a chunk began, and the chunk's rows up to its
// own, make a row's result; the state is brought forward where a chunk ends.
#pragma once
#include "rows.cuh"

namespace pk {

constexpr int kChunk = 64;
constexpr int kMaxConv = 8;
constexpr int kMaxDim = 256;  // of a head: config.py has no larger ones
constexpr int kMaxState = 256;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

struct MambaCall {
  long long heads, dim, state, groups;  // dim: of a head; state: numbers for each element of it
  long long inner, channels, width;     // heads dim; of the convolution: x, B and C; of a row of the product before
  long long first;                      // row with which the sequence's part begins
  int conv, has_bias;
  int count;  // rows of that part; 0: every row is the next of a sequence of its own
  float min_step, max_step, epsilon;
};

// The part of a sequence that a block computes: of a prompt all rows of the call, of a step the row `step`.
struct Part {
  long long first, count, start, slot;

  // Where the cache has what the convolution sees of a position.
  __device__ __forceinline__ long long tail(long long position, const MambaCall &call) const {
    return (slot * call.conv + static_cast<unsigned>(position) % static_cast<unsigned>(call.conv)) * call.channels;
  }
};

__device__ __forceinline__ Part part_of(const int *positions, const int *slots, long long step, const MambaCall &call) {
  const long long first = call.count ? call.first : step;
  return {first, call.count ? call.count : 1, positions[first], slots[first]};
}

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

// The length of a head's step.
template <class T>
__device__ __forceinline__ float step_of(T raw, T bias, const MambaCall &call) {
  const float sum = widen(raw) + widen(bias), step = sum > 20.0f ? sum : log1pf(expf(sum));
  return step < call.min_step ? call.min_step : step > call.max_step ? call.max_step : step;
}

__device__ __forceinline__ float over_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

// A sum of two floats: what two such sums differ by has the precision of one, however large both are.
struct Total {
  float high, low;
};

__device__ __forceinline__ Total added(Total a, Total b) {
  const float high = a.high + b.high, of_b = high - a.high;
  return {high, (a.high - (high - of_b)) + (b.high - of_b) + a.low + b.low};
}

// What is left at the end of steps of what was there at their beginning.
__device__ __forceinline__ float fall(Total end, Total begin = {0.0f, 0.0f}) {
  return expf((end.high - begin.high) + (end.low - begin.low));
}

// Running sums of a chunk's step lengths times the head's rate, by the first warp. A block waits before and after.
__device__ __forceinline__ void sum_steps(const float *length, float rate_log, Total *total) {
  if (threadIdx.x >= 32) return;
  const int lane = threadIdx.x;
  const float rate = -expf(rate_log);
  const Total first = {length[2 * lane] * rate, 0.0f}, second = {length[2 * lane + 1] * rate, 0.0f};
  Total sum = added(first, second);
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const Total other = {__shfl_up_sync(0xffffffffu, sum.high, lanes), __shfl_up_sync(0xffffffffu, sum.low, lanes)};
    if (lane >= lanes) sum = added(other, sum);
  }
  const Total other = {__shfl_up_sync(0xffffffffu, sum.high, 1), __shfl_up_sync(0xffffffffu, sum.low, 1)};
  total[2 * lane] = lane > 0 ? added(other, first) : first;
  total[2 * lane + 1] = sum;
}

}  // namespace pk
