// epilogue.cuh: what becomes of the sums of a matrix product: scale, bias, activation, another array added.
#pragma once
#include "activation.cuh"

namespace pk {

// act(alpha sum + bias) + beta residual. kSwiglu: silu of column j times column j + columns, of sums that have twice as
// many columns as the result.
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
  R value = R(after.alpha) * sum;
  if (after.has_bias) value += widen(bias[column]);
  value = activated(value, after.activation);
  if (after.activation == kSwiglu) {
    up = R(after.alpha) * up;
    if (after.has_bias) up += widen(bias[column + after.columns]);
    value *= up;
  }
  if (after.has_residual) value += R(after.beta) * widen(*residual);
  return value;
}

}  // namespace pk
