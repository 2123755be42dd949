// activate.cuh: an activation of all results that a thread has. Curves are in a loop, through which results go round in
// registers: written out for each result they would be code that takes minutes to compile.
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
#pragma unroll 1
  for (int turn = 0; turn < P * N; ++turn) {
    const A first = activated(x[0][0], which);
#pragma unroll
    for (int i = 1; i < P * N; ++i) x[(i - 1) / N][(i - 1) % N] = x[i / N][i % N];
    x[P - 1][N - 1] = first;
  }
}

}  // namespace pk
