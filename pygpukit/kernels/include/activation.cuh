// activation.cuh: activations that a kernel applies to its results, by number, in the compute type.
#pragma once
#include "math.cuh"

namespace pk {

// which: as pygpukit/ops/nn/conv/plan.py numbers them.
template <class A>
__device__ __forceinline__ A activated(A x, long long which) {
  switch (which) {
    case 1: return x < A(0) ? A(0) : x;
    case 2: return silu<A>(x);
    case 3: return gelu<A>(x);
    case 4: return sigmoid<A>(x);
    case 5: return tanh(x);
    default: return x;
  }
}

}  // namespace pk
