// epilogue.cuh: what becomes of the sums of a matrix product: scale, bias, activation, another array added.
#pragma once
#include "activation.cuh"

namespace pk {

// act(alpha sum + bias) + beta residual. kSwiglu: silu of column j times column j + columns, of sums that have twice as
// many columns as the result. Where a product is added to, it says so: what a compiler contracts differs between
// kernels.
struct After {
  double alpha, beta;
  long long columns;  // of the result
  int activation, has_bias, has_residual, unused;
};

// The element of column `column`, from its sum, and with kSwiglu that of column + columns. residual: where its element
// of the array to be added is; read only if there is one.
template <class T, class R>
__device__ __forceinline__ R finished(const After &after, R sum, R up, const T *bias, long long column,
                                      const T *residual) {
  const R alpha = R(after.alpha);
  R value = after.has_bias ? fma(alpha, sum, R(widen(bias[column]))) : alpha * sum;
  value = activated(value, after.activation);
  if (after.activation == kSwiglu) {
    value *= after.has_bias ? fma(alpha, up, R(widen(bias[column + after.columns]))) : alpha * up;
  }
  if (after.has_residual) value = fma(R(after.beta), R(widen(*residual)), value);
  return value;
}

}  // namespace pk
