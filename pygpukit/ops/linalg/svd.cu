// svd.cu: singular value decompositions of small matrices by Jacobi's rotations of their columns (Hestenes' method).
#include "matrices.cuh"

namespace pk {

struct SvdCall {
  Stack a;
  int m, n;     // rows and columns, m at least n
  int is_adjoint;   // the array's matrices are the adjoints: their u is our v
  int columns;  // of the larger factor; 0: singular values alone
  int sweeps;   // at most
};

// Columns p and q, by a warp; a column's elements are neighbours. Whether they were not orthogonal.
template <class T>
__device__ bool turn_columns(T *a, int m, int a_step, T *v, int n, int v_step, int p, int q) {
  using R = real_t<T>;
  const int lane = threadIdx.x % 32;
  T *x = a + p * a_step, *y = a + q * a_step;
  R xx = 0, yy = 0;
  T xy = convert<T>::from(R(0));
  for (int i = lane; i < m; i += 32) {
    xx += squared(x[i]);
    yy += squared(y[i]);
    xy = add(xy, multiply(conjugate(x[i]), y[i]));
  }
  xx = warp_sum(xx);
  yy = warp_sum(yy);
  xy = warp_sum(xy);
  const R size = magnitude(xy), negligible = R(limits<R>::smallest);
  if (xx < negligible || yy < negligible || !(size > R(limits<R>::epsilon) * ::sqrt(R(m)) * ::sqrt(xx) * ::sqrt(yy)))
    return false;
  const Rotation<T> by = rotation(xx, yy, xy, size);
  for (int i = lane; i < m; i += 32) rotate(x[i], y[i], by);
  for (int i = lane; i < n && v != nullptr; i += 32) rotate(v[p * v_step + i], v[q * v_step + i], by);
  return true;
}

// Columns of u that have no length become unit vectors orthogonal to all others, by one warp: from a column of the
// identity what the others have of it is taken off, twice. Some column keeps a length of 1 / sqrt(m) at least.
template <class T>
__device__ void complete(T *u, int step, real_t<T> *lengths, int m, int columns) {
  using R = real_t<T>;
  const int lane = threadIdx.x;
  for (int k = 0; k < columns; ++k) {
    if (lengths[k] > 0) continue;
    T *own = u + k * step;
    for (int unit = 0; unit < m; ++unit) {
      for (int i = lane; i < m; i += 32) own[i] = convert<T>::from(i == unit ? R(1) : R(0));
      for (int again = 0; again < 2; ++again) {
        for (int other = 0; other < columns; ++other) {
          if (!(lengths[other] > 0)) continue;
          T part = convert<T>::from(R(0));
          for (int i = lane; i < m; i += 32) part = add(part, multiply(conjugate(u[other * step + i]), own[i]));
          part = warp_sum(part);
          for (int i = lane; i < m; i += 32) own[i] = subtract(own[i], multiply(part, u[other * step + i]));
        }
      }
      R square = 0;
      for (int i = lane; i < m; i += 32) square += squared(own[i]);
      square = warp_sum(square);
      if (square * R(2 * m) < R(1)) continue;
      for (int i = lane; i < m; i += 32) own[i] = times(own[i], R(1) / ::sqrt(square));
      break;
    }
    __syncwarp();
    if (lane == 0) lengths[k] = 1;
    __syncwarp();
  }
}

template <class T>
__global__ void __launch_bounds__(128)
    svd(const T *a, T *u, real_t<T> *values, T *vh, int *info, const __grid_constant__ SvdCall call) {
  using R = real_t<T>;
  const int m = call.m, n = call.n, me = threadIdx.x, threads = blockDim.x, lane = me % 32;
  const int u_step = padded(m), v_step = padded(n), all = call.columns > n ? call.columns : n;
  const int even = n + (n & 1), pairs = even / 2;
  extern __shared__ double2 svd_memory[];
  T *x = reinterpret_cast<T *>(svd_memory), *v = x + all * u_step;
  R *lengths = reinterpret_cast<R *>(v + (call.columns ? n * v_step : 0)), *scratch = lengths + all;
  int *place = reinterpret_cast<int *>(scratch + 4);
  const T *from = matrix_of(a, call.a);
  for (int e = me; e < all * u_step; e += threads) {
    const int i = e % u_step, j = e / u_step;
    x[e] = convert<T>::from(R(0));
    if (i >= m || j >= n) continue;
    x[e] = call.is_adjoint ? conjugate(from[j * call.a.row + i * call.a.column])
                           : from[i * call.a.row + j * call.a.column];
  }
  for (int e = me; call.columns && e < n * v_step; e += threads) {
    v[e] = convert<T>::from(e / v_step == e % v_step ? R(1) : R(0));
  }
  __syncthreads();
  const R scale = scale_of(x, n * u_step, scratch);
  for (int e = me; e < n * u_step; e += threads) x[e] = times(x[e], scale);
  __syncthreads();
  bool rotated = scale != 0;
  for (int sweep = 0; rotated && sweep < call.sweeps; ++sweep) {
    rotated = false;
    for (int round = 0; round < even - 1; ++round) {
      bool mine = false;
      for (int pair = me / 32; pair < pairs; pair += threads / 32) {
        int p, q;
        meeting(even, round, pair, &p, &q);
        if (q < n) mine = turn_columns(x, m, u_step, call.columns ? v : nullptr, n, v_step, p, q) || mine;
      }
      if (__syncthreads_or(mine)) rotated = true;
    }
  }
  const bool failed = scale == 0 || rotated;
  const long long block = blockIdx.x;
  if (me == 0) info[block] = failed;
  for (int j = me / 32; j < all; j += threads / 32) {
    R square = 0;
    for (int i = lane; i < m && j < n; i += 32) square += squared(x[j * u_step + i]);
    square = warp_sum(square);
    const R length = square < R(limits<R>::smallest) ? R(0) : ::sqrt(square);
    for (int i = lane; i < m && length > 0; i += 32) x[j * u_step + i] = times(x[j * u_step + i], R(1) / length);
    if (lane == 0) lengths[j] = length;
  }
  __syncthreads();
  for (int j = me; j < all; j += threads) {  // in descending order
    int before = 0;
    for (int other = 0; other < n && j < n; ++other) {
      before += lengths[other] > lengths[j] || (lengths[other] == lengths[j] && other < j);
    }
    place[j] = failed || j >= n ? j : before;
    if (j < n) values[block * n + place[j]] = failed ? not_a_number<R>() : lengths[j] / scale;
  }
  if (!call.columns) return;
  __syncthreads();
  if (me < 32 && !failed) complete(x, u_step, lengths, m, call.columns);
  __syncthreads();
  // The larger factor has m rows, the other n; where the matrices are adjoints the first is vh.
  T *large = call.is_adjoint ? vh + block * call.columns * m : u + block * m * call.columns;
  T *small = call.is_adjoint ? u + block * n * n : vh + block * n * n;
  for (int e = me; e < m * call.columns; e += threads) {
    const int i = e % m, j = e / m;
    const T value = failed ? not_a_number<T>() : x[j * u_step + i];
    if (call.is_adjoint) {
      large[place[j] * m + i] = conjugate(value);
    } else {
      large[i * call.columns + place[j]] = value;
    }
  }
  for (int e = me; e < n * n; e += threads) {
    const int i = e % n, j = e / n;
    const T value = failed ? not_a_number<T>() : v[j * v_step + i];
    if (call.is_adjoint) {
      small[i * n + place[j]] = value;
    } else {
      small[place[j] * n + i] = conjugate(value);
    }
  }
}

}  // namespace pk
