// matrices.cuh: small matrices, one a block, in shared memory: where they lie in arrays, and the numbers in them.
#pragma once
#include "complex.cuh"

namespace pk {

// Matrices in an array of any strides, in elements.
struct Stack {
  Layout<1> batch;
  long long row, column;
};

template <class T>
struct real_part {
  using type = T;
};
template <class R>
struct real_part<complex_t<R>> {
  using type = R;
};
template <class T>
using real_t = typename real_part<T>::type;

template <class R>
__device__ __forceinline__ R real(R x) {
  return x;
}
template <class R>
__device__ __forceinline__ R real(complex_t<R> z) {
  return z.re;
}
template <class R>
__device__ __forceinline__ R conjugate(R x) {
  return x;
}
template <class R>
__device__ __forceinline__ complex_t<R> conjugate(complex_t<R> z) {
  return {z.re, -z.im};
}
template <class R>
__device__ __forceinline__ R magnitude(R x) {
  return ::fabs(x);
}
// The sum of the magnitudes of the parts.
template <class R>
__device__ __forceinline__ R extent(R x) {
  return ::fabs(x);
}
template <class R>
__device__ __forceinline__ R extent(complex_t<R> z) {
  return ::fabs(z.re) + ::fabs(z.im);
}
template <class R>
__device__ __forceinline__ R squared(R x) {
  return x * x;
}
template <class R>
__device__ __forceinline__ R squared(complex_t<R> z) {
  return z.re * z.re + z.im * z.im;
}
template <class R>
__device__ __forceinline__ R times(R x, R factor) {
  return x * factor;
}
template <class R>
__device__ __forceinline__ complex_t<R> times(complex_t<R> z, R factor) {
  return {z.re * factor, z.im * factor};
}

template <class T>
struct limits {
  static constexpr double epsilon = sizeof(T) == 4 ? 1.1920928955078125e-7 : 2.220446049250313e-16;
  static constexpr double smallest = sizeof(T) == 4 ? 1e-30 : 1e-290;  // squares from here on have all their digits
};

template <class T>
__device__ __forceinline__ T not_a_number() {
  const real_t<T> zero = 0;
  return convert<T>::from(zero / zero);
}

// The matrix of this block.
template <class T>
__device__ __forceinline__ const T *matrix_of(const T *a, const Stack &stack) {
  long long at[1];
  locate(stack.batch, static_cast<long long>(blockIdx.x), at);
  return a + at[0];
}

// Elements from a row to the next in shared memory: odd, so that the elements of a column are in different banks.
__device__ __forceinline__ int padded(int columns) { return columns | 1; }

template <class R>
__device__ __forceinline__ R warp_sum(R value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}
template <class R>
__device__ __forceinline__ complex_t<R> warp_sum(complex_t<R> value) {
  return {warp_sum(value.re), warp_sum(value.im)};
}

// A power of two that brings the largest of `count` numbers of the block near 1, so that squares neither overflow nor
// vanish; 0 where one of them is not finite. `scratch`: a number for each warp. Every thread has the same.
template <class T>
__device__ real_t<T> scale_of(const T *numbers, int count, real_t<T> *scratch) {
  using R = real_t<T>;
  R largest = 0;
  bool finite = true;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const R size = extent(numbers[i]);
    finite = finite && size - size == 0;
    if (size > largest) largest = size;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const R other = __shfl_xor_sync(0xffffffffu, largest, lanes);
    if (other > largest) largest = other;
  }
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = largest;
  if (__syncthreads_or(!finite)) return 0;
  for (int warp = 0; warp < int(blockDim.x) / 32; ++warp) {
    if (scratch[warp] > largest) largest = scratch[warp];
  }
  __syncthreads();
  if (largest == 0) return 1;
  int exponent;
  ::frexp(largest, &exponent);
  // The inverse is a number, too.
  constexpr int max_exponent = sizeof(R) == 4 ? 120 : 1000;
  return ::ldexp(R(1), exponent > max_exponent ? -max_exponent : exponent < -max_exponent ? max_exponent : -exponent);
}

// ---- Jacobi's rotations, of columns p and q: p' = c p - conj(z) q, q' = z p + c q ----

template <class T>
struct Rotation {
  real_t<T> c;
  T z;
};

// The one after which the off-diagonal element of [[pp, pq], [conj(pq), qq]] is zero; size: the magnitude of pq.
template <class T>
__device__ __forceinline__ Rotation<T> rotation(real_t<T> pp, real_t<T> qq, T pq, real_t<T> size) {
  using R = real_t<T>;
  const R ratio = (qq - pp) / (R(2) * size);
  const R tangent = (ratio >= 0 ? R(1) : R(-1)) / (::fabs(ratio) + ::sqrt(R(1) + ratio * ratio));
  const R c = R(1) / ::sqrt(R(1) + tangent * tangent);
  return {c, times(pq, tangent * c / size)};
}
template <class T>
__device__ __forceinline__ void rotate(T &p, T &q, Rotation<T> by) {
  const T first = p, second = q;
  p = subtract(times(first, by.c), multiply(conjugate(by.z), second));
  q = add(multiply(by.z, first), times(second, by.c));
}

// Pair number `pair` of a round of all pairs of n columns, n even: every column is in one. Each two meet in n - 1 rounds.
__device__ __forceinline__ void meeting(int n, int round, int pair, int *p, int *q) {
  const int circle = n - 1;
  const int a = pair == 0 ? n - 1 : (round + pair) % circle;
  const int b = pair == 0 ? round : (round + circle - pair) % circle;
  *p = a < b ? a : b;
  *q = a < b ? b : a;
}

}  // namespace pk
