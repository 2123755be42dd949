// activation.cuh: activations that a kernel applies to its results, by number, in the compute type.
#pragma once
#include "math.cuh"

namespace pk {

// kSwiglu: silu of one result times another.
enum Activation { kNone, kRelu, kGelu, kGeluTanh, kSilu, kSwiglu, kSigmoid, kTanh };

template <class A>
__device__ __forceinline__ A activated(A x, long long which) {
  switch (which) {
    case kRelu: return x < A(0) ? A(0) : x;
    case kGelu: return gelu<A>(x);
    case kGeluTanh: return gelu_tanh<A>(x);
    case kSilu:
    case kSwiglu: return silu<A>(x);
    case kSigmoid: return sigmoid<A>(x);
    case kTanh: return tanh(x);
    default: return x;
  }
}

}  // namespace pk
