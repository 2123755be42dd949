// epilogue.cuh: what becomes of the sums of a matrix product: scale, bias, activation, another array added.
#pragma once
#include "activation.cuh"

namespace pk {

// act(alpha sum + bias) + beta residual. kSwiglu: silu of column j times column j + columns, of sums that have twice as
// many columns as the result. Where a product is added to, it says so: what a compiler contracts differs between
// kernels.
struct Epilogue {
  double alpha, beta;
  long long columns;  // of the result
  int activation, has_bias, has_residual, unused;
};

// What adds nothing, not even to -0.
template <class R>
__device__ __forceinline__ R nothing() {
  return R(-0.0);
}

// The element of column `column`, from its sum, and with kSwiglu that of column + columns. residual: where its element
// of the array to be added is; read only if there is one.
template <class T, class R>
__device__ __forceinline__ R finished(const Epilogue &after, R sum, R up, const T *bias, long long column,
                                      const T *residual) {
  const R alpha = R(after.alpha);
  R value = fma(alpha, sum, after.has_bias ? R(widen(bias[column])) : nothing<R>());
  value = activated_for<T>(value, after.activation);
  if (after.activation == kSwiglu)
    value *= fma(alpha, up, after.has_bias ? R(widen(bias[column + after.columns])) : nothing<R>());
  if (after.has_residual) value = fma(R(after.beta), R(widen(*residual)), value);
  return value;
}

// 16 bytes of a row.
template <class T>
struct alignas(16) Piece {
  static constexpr int kNumbers = 16 / sizeof(T);
  T of[kNumbers];
};
template <class T>
__device__ __forceinline__ Piece<T> piece_at(const T *numbers, bool there = true) {
  Piece<T> fetched;
  if (there) {
    fetched = *reinterpret_cast<const Piece<T> *>(numbers);
  } else {
    for (T &number : fetched.of) number = convert<T>::from(nothing<compute_t<T>>());
  }
  return fetched;
}

// finished(), of a piece of rounded sums in float32. bias, residual: nothing() where there is none. Activation: not
// kSwiglu.
template <int Activation, class T>
__device__ __forceinline__ void finish_piece(Piece<T> &sums, const Piece<T> &bias, const Piece<T> &residual,
                                             float alpha, float beta) {
#pragma unroll
  for (int i = 0; i < Piece<T>::kNumbers; ++i) {
    const float value = activated_for<T>(fmaf(alpha, widen(sums.of[i]), widen(bias.of[i])), Activation);
    sums.of[i] = convert<T>::from(fmaf(beta, widen(residual.of[i]), value));
  }
}

}  // namespace pk
