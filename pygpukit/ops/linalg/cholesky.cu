// cholesky.cu: Cholesky factors of small matrices.
#include "matrices.cuh"

namespace pk {

struct CholeskyCall {
  Stack a;
  int n;
};

template <class T>
__global__ void __launch_bounds__(128)
    cholesky(const T *a, T *lower, int *info, const __grid_constant__ CholeskyCall call) {
  using R = real_t<T>;
  const int n = call.n, step = padded(n), me = threadIdx.x, threads = blockDim.x;
  extern __shared__ double2 cholesky_memory[];
  T *l = reinterpret_cast<T *>(cholesky_memory);
  const T *from = matrix_of(a, call.a);
  for (int e = me; e < n * n; e += threads) {
    const int i = e / n, j = e % n;
    l[i * step + j] = j <= i ? from[i * call.a.row + j * call.a.column] : convert<T>::from(R(0));
  }
  __syncthreads();
  int failed = 0;
  for (int k = 0; k < n; ++k) {
    const R square = real(l[k * step + k]);
    if (!(square > 0) || square - square != 0) {
      failed = k + 1;
      break;
    }
    const R root = ::sqrt(square);
    __syncthreads();
    for (int i = k + me; i < n; i += threads) {
      l[i * step + k] = i == k ? convert<T>::from(root) : times(l[i * step + k], R(1) / root);
    }
    __syncthreads();
    const int rest = n - k - 1;
    for (int e = me; e < rest * rest; e += threads) {
      const int i = k + 1 + e / rest, j = k + 1 + e % rest;
      if (j <= i) {
        l[i * step + j] = subtract(l[i * step + j], multiply(l[i * step + k], conjugate(l[j * step + k])));
      }
    }
    __syncthreads();
  }
  if (me == 0) info[blockIdx.x] = failed;
  T *out = lower + static_cast<long long>(blockIdx.x) * n * n;
  for (int e = me; e < n * n; e += threads) out[e] = failed ? not_a_number<T>() : l[e / n * step + e % n];
}

}  // namespace pk
