// activate.cuh: an activation of all results that a thread has. Curves are in a loop, through local memory: written out
// for each result they would be code that takes minutes to compile.
#pragma once
#include "activation.cuh"

namespace pk {

template <class A, int P, int N>
__device__ __forceinline__ void activate(A (&x)[P][N], long long which) {
  if (which == kNone) return;
  if (which == kRelu) {
#pragma unroll
    for (int i = 0; i < P * N; ++i) x[i / N][i % N] = activated(x[i / N][i % N], kRelu);
    return;
  }
  A copy[P * N];
#pragma unroll
  for (int i = 0; i < P * N; ++i) copy[i] = x[i / N][i % N];
#pragma unroll 1
  for (int i = 0; i < P * N; ++i) copy[i] = activated(copy[i], which);
#pragma unroll
  for (int i = 0; i < P * N; ++i) x[i / N][i % N] = copy[i];
}

}  // namespace pk
