// exponentials.cuh: what all kernels of softmax do with an element and with the sum of its row.
#pragma once
#include "row_work.cuh"

namespace pk {

// Of a distance from the largest element. Types of 16 bits round anyway, so they are spared the last bits.
template <class T, class A>
__device__ __forceinline__ A exponential_of(A distance) {
  if constexpr (sizeof(T) == 2) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(distance * 1.44269504f));
    return result;
  }
  return exp(distance);
}

// exponential / sum, for a sum of at least 1. Types of 16 bits round anyway, so they are spared the last bits.
template <class T, class A>
__device__ __forceinline__ A share(A exponential, A sum, A inverse) {
  const A near = exponential * inverse;
  return sizeof(T) == 2 ? near : fma(fma(-near, sum, exponential), inverse, near);
}

template <class T, class A>
__device__ __forceinline__ T softmax_of(T value, const Exponentials<A> &all, A logarithm, bool log) {
  const A distance = widen(value) - all.top;
  return convert<T>::from(log ? distance - logarithm : exp(distance) / all.sum);
}

// Relative to the largest element even where that is infinite: such rows are nan, as exp(x - max) is.
template <class A>
__device__ __forceinline__ Exponentials<A> settled(Exponentials<A> all) {
  if (all.top - all.top != 0) all.sum = all.top - all.top;
  return all;
}

}  // namespace pk
