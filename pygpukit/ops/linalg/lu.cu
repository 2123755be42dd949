// lu.cu: systems of equations and determinants of small matrices, by LU factorization with partial pivoting.
#include "matrices.cuh"

namespace pk {

struct LuCall {
  Stack a, b;
  int n, columns;  // rows and columns of a; columns of b
  int together;    // columns of b in shared memory at a time
};

// L (without its ones) and U in the place of a; order: the row of the input that each row is. Every thread has the result:
// the first zero pivot's number, from 1, or 0; swaps: whether an odd number of rows were exchanged.
template <class T>
__device__ int factorize(T *a, int *order, int n, bool *odd) {
  const int step = padded(n), me = threadIdx.x, threads = blockDim.x;
  int singular = 0;
  *odd = false;
  for (int k = 0; k < n; ++k) {
    int pivot = k;  // each thread looks itself: the loads are the same in all of them
    for (int i = k + 1; i < n; ++i) {
      if (extent(a[i * step + k]) > extent(a[pivot * step + k])) pivot = i;
    }
    __syncthreads();
    if (pivot != k) {
      *odd = !*odd;
      for (int j = me; j < n; j += threads) {
        const T kept = a[k * step + j];
        a[k * step + j] = a[pivot * step + j];
        a[pivot * step + j] = kept;
      }
      if (me == 0) {
        const int kept = order[k];
        order[k] = order[pivot];
        order[pivot] = kept;
      }
      __syncthreads();
    }
    const T top = a[k * step + k];
    if (extent(top) == 0) {
      if (singular == 0) singular = k + 1;
      continue;
    }
    for (int i = k + 1 + me; i < n; i += threads) a[i * step + k] = divide(a[i * step + k], top);
    __syncthreads();
    const int rest = n - k - 1;
    for (int e = me; e < rest * rest; e += threads) {
      const int i = k + 1 + e / rest, j = k + 1 + e % rest;
      a[i * step + j] = subtract(a[i * step + j], multiply(a[i * step + k], a[k * step + j]));
    }
    __syncthreads();
  }
  return singular;
}

template <class T>
__device__ __forceinline__ void load(T *to, int *order, const T *from, const Stack &stack, int n) {
  for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
    const int i = e / n, j = e % n;
    to[i * padded(n) + j] = from[i * stack.row + j * stack.column];
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) order[i] = i;
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(128)
    lu_solve(const T *a, const T *b, T *x, int *info, const __grid_constant__ LuCall call) {
  const int n = call.n, me = threadIdx.x, threads = blockDim.x, step = padded(n);
  extern __shared__ double2 lu_memory[];
  T *lu = reinterpret_cast<T *>(lu_memory), *part = lu + n * step;
  int *order = reinterpret_cast<int *>(part + n * call.together);
  load(lu, order, matrix_of(a, call.a), call.a, n);
  bool odd;
  const int singular = factorize(lu, order, n, &odd);
  if (me == 0) info[blockIdx.x] = singular;
  const T *right = matrix_of(b, call.b);
  T *out = x + static_cast<long long>(blockIdx.x) * n * call.columns;
  if (singular) {
    for (long long e = me; e < static_cast<long long>(n) * call.columns; e += threads) out[e] = not_a_number<T>();
    return;
  }
  for (int first = 0; first < call.columns; first += call.together) {
    const int left = call.columns - first, count = left < call.together ? left : call.together;
    for (int e = me; e < n * count; e += threads) {
      const int i = e / count, j = e % count;
      part[e] = right[order[i] * call.b.row + (first + j) * call.b.column];
    }
    __syncthreads();
    for (int k = 0; k < n - 1; ++k) {
      for (int e = me; e < (n - k - 1) * count; e += threads) {
        const int i = k + 1 + e / count, j = e % count;
        part[i * count + j] = subtract(part[i * count + j], multiply(lu[i * step + k], part[k * count + j]));
      }
      __syncthreads();
    }
    for (int k = n - 1; k >= 0; --k) {
      for (int j = me; j < count; j += threads) part[k * count + j] = divide(part[k * count + j], lu[k * step + k]);
      __syncthreads();
      for (int e = me; e < k * count; e += threads) {
        const int i = e / count, j = e % count;
        part[e] = subtract(part[e], multiply(lu[i * step + k], part[k * count + j]));
      }
      __syncthreads();
    }
    for (int e = me; e < n * count; e += threads) {
      out[static_cast<long long>(e / count) * call.columns + first + e % count] = part[e];
    }
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(128)
    lu_slogdet(const T *a, T *sign_out, real_t<T> *logabs, const __grid_constant__ LuCall call) {
  using R = real_t<T>;
  const int n = call.n, step = padded(n);
  extern __shared__ double2 lu_memory[];
  T *lu = reinterpret_cast<T *>(lu_memory);
  int *order = reinterpret_cast<int *>(lu + n * step);
  load(lu, order, matrix_of(a, call.a), call.a, n);
  bool odd;
  factorize(lu, order, n, &odd);
  if (threadIdx.x != 0) return;
  T turn = convert<T>::from(odd ? R(-1) : R(1));
  R sum = 0;
  for (int k = 0; k < n; ++k) {
    const R size = magnitude(lu[k * step + k]);
    turn = size == 0 ? convert<T>::from(R(0)) : multiply(turn, divide(lu[k * step + k], convert<T>::from(size)));
    sum += ::log(size);
  }
  sign_out[blockIdx.x] = turn;
  logabs[blockIdx.x] = sum;
}

}  // namespace pk
