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

// An activation of what is rounded to S, with no more digits than that keeps.
template <class S, class R>
__device__ __forceinline__ R activated_for(R x, int which) {
  switch (which) {
    case kGelu: return gelu<S>(x);
    case kGeluTanh: return gelu_tanh<S>(x);
    case kSilu:
    case kSwiglu: return silu<S>(x);
    default: return activated(x, which);
  }
}

template <int Value>
struct constant_t {
  static constexpr int value = Value;
};

// Calls what takes the activation as a constant: one of those that products have, but for kSwiglu.
template <class Function>
__device__ __forceinline__ void with_activation(int activation, const Function &call) {
  switch (activation) {
    case kRelu: return call(constant_t<kRelu>{});
    case kGelu: return call(constant_t<kGelu>{});
    case kGeluTanh: return call(constant_t<kGeluTanh>{});
    case kSilu: return call(constant_t<kSilu>{});
    default: return call(constant_t<kNone>{});
  }
}

}  // namespace pk
