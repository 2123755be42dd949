// lstm.cuh: what the kernels of the LSTM share: where a sequence lies, and a unit's step from its four sums.
//
// A sum over H has 32 partial sums, one a lane, of the elements lane, lane + 32, ..., which are added in a fixed tree:
// lanes 16 apart, then 8, 4, 2, 1. A sequence has the same bits whatever is computed with it, by either kernel.
#pragma once
#include "numeric.cuh"

namespace pk {

struct Lstm {
  long long sequences, hidden, rows, directions;  // rows: of the axis along which all sequences lie
  long long steps;                                // of each sequence, where there are no spans
  long long has_spans;
  long long reverse;   // of the only direction; of two, the second is
  long long number;    // of the step, in the order in which they are computed; for a launch a step
  long long together;  // sequences of a cluster
};

template <class R>
__device__ __forceinline__ R sigmoid(R x) {
  if constexpr (sizeof(R) == 8) return R(1) / (R(1) + ::exp(-x));
  return R(1) / (R(1) + ::expf(-x));
}
template <class R>
__device__ __forceinline__ R hyperbolic_tangent(R x) {
  if constexpr (sizeof(R) == 8) return ::tanh(x);
  return ::tanhf(x);
}
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return ::fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return ::fma(a, b, c); }

__device__ __forceinline__ bool runs_back(const Lstm &p, long long direction) {
  return p.directions == 2 ? direction == 1 : p.reverse != 0;
}
// The first row of a sequence, and how many it has.
__device__ __forceinline__ long long first_of(const Lstm &p, const long long *spans, long long sequence) {
  return p.has_spans ? spans[2 * sequence] : sequence * p.steps;
}
__device__ __forceinline__ long long length_of(const Lstm &p, const long long *spans, long long sequence) {
  return p.has_spans ? spans[2 * sequence + 1] : p.steps;
}

}  // namespace pk
