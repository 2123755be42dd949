// qr.cu: QR of small matrices by Householder's reflections 1 - tau v conj(v)', which LAPACK's geqrf describes.
#include "matrices.cuh"

namespace pk {

struct QrCall {
  Stack a;
  int m, n;     // rows and columns
  int columns;  // of q; 0: none is made
};

// conj(tau) and tau are what applies the reflection's adjoint, and the reflection, to columns.
template <class T>
__device__ __forceinline__ void reflect(const T *v, int v_step, T *column, int step, int first, int m, T tau) {
  T sum = column[first * step];
  for (int i = first + 1; i < m; ++i) sum = add(sum, multiply(conjugate(v[i * v_step]), column[i * step]));
  sum = multiply(tau, sum);
  column[first * step] = subtract(column[first * step], sum);
  for (int i = first + 1; i < m; ++i) column[i * step] = subtract(column[i * step], multiply(v[i * v_step], sum));
}

template <class T>
__global__ void __launch_bounds__(128) qr(const T *a, T *h, T *tau, T *q, const __grid_constant__ QrCall call) {
  using R = real_t<T>;
  const int m = call.m, n = call.n, step = padded(n), me = threadIdx.x, threads = blockDim.x;
  const int count = m < n ? m : n;
  extern __shared__ double2 qr_memory[];
  T *r = reinterpret_cast<T *>(qr_memory), *taus = r + m * step;
  R *scratch = reinterpret_cast<R *>(taus + count);
  const T *from = matrix_of(a, call.a);
  for (int e = me; e < m * step; e += threads) {
    const int i = e / step, j = e % step;
    r[e] = j < n ? from[i * call.a.row + j * call.a.column] : convert<T>::from(R(0));
  }
  __syncthreads();
  R scale = scale_of(r, m * step, scratch);
  if (scale == 0) scale = 1;  // with NaN or infinities: they go on
  for (int e = me; e < m * step; e += threads) r[e] = times(r[e], scale);
  __syncthreads();
  for (int k = 0; k < count; ++k) {
    const T top = r[k * step + k];
    R below = 0;  // each thread adds them up itself: the loads are the same in all of them
    for (int i = k + 1; i < m; ++i) below += squared(r[i * step + k]);
    const R size = ::sqrt(squared(top) + below);
    const T beta = convert<T>::from(real(top) > 0 ? -size : size);
    const bool nothing = below == 0 && extent(subtract(top, conjugate(top))) == 0;
    const T factor = nothing ? convert<T>::from(R(0)) : times(subtract(beta, top), R(1) / real(beta));
    const T shift = subtract(top, beta);
    __syncthreads();
    for (int i = k + 1 + me; i < m && !nothing; i += threads) r[i * step + k] = divide(r[i * step + k], shift);
    if (me == 0) taus[k] = factor;
    if (me == 0 && !nothing) r[k * step + k] = beta;
    __syncthreads();
    for (int j = k + 1 + me; j < n; j += threads) reflect(r + k, step, r + j, step, k, m, conjugate(factor));
    __syncthreads();
  }
  const long long block = blockIdx.x;
  for (int e = me; e < m * n; e += threads) {
    const int i = e / n, j = e % n;
    h[block * m * n + e] = j < i ? r[i * step + j] : times(r[i * step + j], R(1) / scale);
  }
  for (int k = me; k < count; k += threads) tau[block * count + k] = taus[k];
  T *out = q + block * m * call.columns;
  for (int j = me; j < call.columns; j += threads) {  // a column a thread, from a column of the identity
    for (int i = 0; i < m; ++i) out[i * call.columns + j] = convert<T>::from(i == j ? R(1) : R(0));
    for (int k = count - 1; k >= 0; --k) reflect(r + k, step, out + j, call.columns, k, m, taus[k]);
  }
}

}  // namespace pk
