// linear.cuh: what products of rows with a weight (out, in) share: their call, norms of rows, their epilogue.
#pragma once
#include "rows.cuh"

namespace pk {

constexpr int kWarps = 8;  // of a block, or those of its warps that normalise a row
constexpr int kThreads = 32 * kWarps;
constexpr int kHeld = 8;  // elements of a row that a thread reads at once

enum LinearEpilogue { kStore, kAdd, kGelu, kGeluErf, kSilu };

struct LinearCall {
  long long n, k;  // columns of the result, of kSilu half of the weight's rows; elements of a row
  int rows, has_bias, has_shift;
  float epsilon;
};

__device__ __forceinline__ float over_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

// The sum over the block's threads, known to all.
__device__ __forceinline__ float over_block(float value, float (&sums)[kWarps]) {
  value = over_warp(value);
  __syncthreads();
  if (threadIdx.x < kThreads && threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) value += sums[warp];
  return value;
}

// of(i, x[i]) for the elements of a row that are this thread's, in their order.
template <class T, class F>
__device__ __forceinline__ void for_own(const T *x, long long k, F of) {
  if (threadIdx.x >= kThreads) return;
  for (long long first = threadIdx.x; first < k; first += kThreads * kHeld) {
    T value[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (first + i * kThreads < k) value[i] = x[first + i * kThreads];
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (first + i * kThreads < k) of(first + i * kThreads, value[i]);
  }
}

// A row's bytes on their way to the cache of the device.
template <class T>
__device__ __forceinline__ void prefetch(const T *row, long long count) {
  constexpr int kLine = 128 / static_cast<int>(sizeof(T));
  for (long long i = threadIdx.x * static_cast<long long>(kLine); i < count;
       i += static_cast<long long>(kLine) * kThreads)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(row + i));
}

// One row, normalised: RMS norm, or layer norm where kCentered. out may be where scale is.
template <class T, bool kCentered>
__device__ __forceinline__ void norm_row(const float *x, const T *scale, const T *shift, T *out, const LinearCall &call,
                                         float (&sums)[kWarps]) {
  const float count = static_cast<float>(call.k);
  float mean = 0.0f;
  if (kCentered) {
    float sum = 0.0f;
    for_own(x, call.k, [&](long long, float value) { sum += value; });
    mean = over_block(sum, sums) / count;
  }
  float squares = 0.0f;
  for_own(x, call.k, [&](long long, float element) {
    const float value = element - mean;
    squares = fmaf(value, value, squares);
  });
  const float factor = 1.0f / sqrtf(over_block(squares, sums) / count + call.epsilon);
  for_own(x, call.k, [&](long long i, float element) {
    float value = (element - mean) * factor * widen(scale[i]);
    if (call.has_shift) value += widen(shift[i]);
    out[i] = convert<T>::from(value);
  });
}

// Models' results hold these bits, by tanhf and erfcf; math.cuh's gelu_tanh and gelu are other approximations.
__device__ __forceinline__ float gelu_by_tanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * (x * x * x))));
}

__device__ __forceinline__ float gelu_by_erfc(float x) { return 0.5f * x * erfcf(-0.70710678118654752f * x); }

// A sum, and what is put to it: of kSilu the other sum, of kAdd what is there.
template <int kEpilogue, class Out>
__device__ __forceinline__ void finish(Out *out, float value, float other) {
  if (kEpilogue == kGelu) value = gelu_by_tanh(value);
  if (kEpilogue == kGeluErf) value = gelu_by_erfc(value);
  if (kEpilogue == kSilu) value = value / (1.0f + expf(-value)) * other;
  if (kEpilogue == kAdd) value += other;
  *out = convert<Out>::from(value);
}

}  // namespace pk
